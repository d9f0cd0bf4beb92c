-- The columns of a job that decisions about it need. ?1 id.
-- Uses the primary key.
SELECT state, queue, attempts, max_attempts, losses, cancel_requested, lease_counter, lease_secret, eligible_at,
       waits_for, has_dependents, worker, started_at, options, result, job_type, rank, tenant
FROM job WHERE id = ?1
