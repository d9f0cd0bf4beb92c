-- What decisions about a job are made of. ?1 id.
SELECT state, queue, attempts, max_attempts, losses, cancel_requested, lease_counter, lease_secret, eligible_at, waits_for, has_dependents,
       worker, started_at, options, result, job_type
FROM job WHERE id = ?1
