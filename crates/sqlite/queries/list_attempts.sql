-- A job's ended attempts, oldest first. ?1 job.
-- Uses the primary key.
SELECT attempt, lease, outcome, goes_to, worker, started_at, ended_at, error FROM attempt WHERE job_id = ?1
ORDER BY lease
