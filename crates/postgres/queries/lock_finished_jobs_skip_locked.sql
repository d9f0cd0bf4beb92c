-- As lock_finished_jobs.sql, but skips jobs that another transaction has locked. $1 ids. Relies on the primary keys.
WITH dead AS MATERIALIZED (
    SELECT id, state::text FROM orchestrix.dead WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED
), cancelled AS MATERIALIZED (
    SELECT id, state::text FROM orchestrix.history WHERE id = ANY ($1::uuid[]) AND state = 'cancelled' ORDER BY id FOR UPDATE SKIP LOCKED
)
SELECT id, state FROM dead UNION ALL SELECT id, state FROM cancelled
