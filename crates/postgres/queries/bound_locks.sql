-- Bounds how long statements of this transaction wait for locks, unless they are bound closer already. $1 milliseconds. Gives
-- what it was before, and the transaction's time in microseconds.
WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS patience)
SELECT patience, (extract(epoch FROM now()) * 1000000)::bigint,
       set_config('lock_timeout',
           CASE WHEN patience::interval > interval '0' AND patience::interval <= $1 * interval '1 millisecond' THEN patience ELSE $1::text END, true)
FROM before
