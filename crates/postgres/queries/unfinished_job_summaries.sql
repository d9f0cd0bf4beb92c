-- The summaries of unfinished jobs, with the columns of job_summary.sql. $1 ids. Relies on the primary key.
SELECT id, state::text, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at, started_at, NULL::timestamptz AS finished_at,
       worker, cancel_requested, progress::text, NULL::text AS reason, options::text
FROM orchestrix.job WHERE id = ANY ($1::uuid[])
