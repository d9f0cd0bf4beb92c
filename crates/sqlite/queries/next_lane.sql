-- The first lane with claimable jobs, at or after a queue and job type. ?1 queue, ?2 job type. Relies on job_claim.
SELECT queue, job_type FROM job WHERE state = 'pending' AND (queue, job_type) >= (?1, ?2)
ORDER BY queue, job_type LIMIT 1
