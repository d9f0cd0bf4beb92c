-- How one attempt ended. ?1 job, ?2 lease counter.
-- Uses the primary key.
SELECT secret, outcome, goes_to, error FROM attempt WHERE job_id = ?1 AND lease = ?2
