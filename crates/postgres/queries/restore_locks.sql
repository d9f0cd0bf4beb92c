-- Lets the rest of this transaction wait for locks as it did before. $1 how long.
SELECT set_config('lock_timeout', $1, true)
