-- Deletes a job's attempts up to a lease counter. ?1 job, ?2 lease counter.
-- Uses the primary key.
DELETE FROM attempt WHERE job_id = ?1 AND lease <= ?2
