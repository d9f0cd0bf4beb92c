-- The claim key of the first claimable job of a lane. ?1 queue, ?2 job type. Relies on job_claim.
SELECT rank, eligible_at, id FROM job WHERE state = 'pending' AND queue = ?1 AND job_type = ?2
ORDER BY rank, eligible_at, id LIMIT 1
