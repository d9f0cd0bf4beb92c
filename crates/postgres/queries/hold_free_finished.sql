-- The same as hold_finished.sql for those that nobody else has: it waits for none. $1 ids. Relies on the primary keys.
WITH dead AS MATERIALIZED (
    SELECT id, state::text FROM orchestrix.dead WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED
), cancelled AS MATERIALIZED (
    SELECT id, state::text FROM orchestrix.history WHERE id = ANY ($1::uuid[]) AND state = 'cancelled' ORDER BY id FOR UPDATE SKIP LOCKED
)
SELECT id, state FROM dead UNION ALL SELECT id, state FROM cancelled
