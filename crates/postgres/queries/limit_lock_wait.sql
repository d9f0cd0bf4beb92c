-- Limits how long this transaction waits for locks, unless its own limit is shorter. $1 milliseconds.
-- Returns the limit before.
WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS lock_timeout)
SELECT lock_timeout,
       set_config('lock_timeout',
           CASE WHEN lock_timeout::interval > interval '0' AND lock_timeout::interval <= $1 * interval '1 millisecond'
                THEN lock_timeout ELSE $1::text END, true)
FROM before
