-- The summary of one job. ?1 id.
-- Uses the primary key.
SELECT id, state, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at,
       started_at, finished_at, worker, cancel_requested, progress, reason, options
FROM job WHERE id = ?1
