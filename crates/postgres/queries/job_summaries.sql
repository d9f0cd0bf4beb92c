-- The summaries of several jobs, with the columns of job_summary.sql. $1 ids. Relies on the primary keys.
SELECT id, state::text, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at, started_at, finished_at,
       worker, cancel_requested, progress::text, reason, options::text
FROM orchestrix.jobs WHERE id = ANY ($1::uuid[])
