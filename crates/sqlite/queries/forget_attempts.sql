-- Forgets a job's attempts up to a lease. ?1 job, ?2 lease.
DELETE FROM attempt WHERE job_id = ?1 AND lease <= ?2
