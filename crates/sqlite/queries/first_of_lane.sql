-- The claim key of the first claimable job of a lane. ?1 queue, ?2 job type, ?3 tenant, ?4 rank. Relies on job_claim.
SELECT eligible_at, id FROM job
WHERE state = 'pending' AND queue = ?1 AND job_type = ?2 AND tenant = ?3 AND rank = ?4
ORDER BY eligible_at, id LIMIT 1
