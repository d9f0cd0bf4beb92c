-- Restores the lock wait limit that limit_lock_wait.sql returned. $1 limit.
SELECT set_config('lock_timeout', $1, true)
