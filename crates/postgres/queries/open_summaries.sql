-- Several unfinished jobs in short. $1 ids. Relies on the primary key. What it selects is what summary.sql does.
SELECT id, state::text, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at, started_at, NULL::timestamptz AS finished_at,
       worker, cancel_requested, progress::text, NULL::text AS reason, options::text
FROM orchestrix.job WHERE id = ANY ($1::uuid[])
