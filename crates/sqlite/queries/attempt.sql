-- How an attempt ended. ?1 job, ?2 lease.
SELECT secret, outcome, goes_to, error FROM attempt WHERE job_id = ?1 AND lease = ?2
