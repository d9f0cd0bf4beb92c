-- As lock_jobs.sql, but skips jobs that another transaction has locked. $1 ids. Relies on the primary key.
SELECT id, state::text, lease_counter, attempts, losses FROM orchestrix.job WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED
