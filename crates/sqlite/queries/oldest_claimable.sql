-- The first claimable job after a lane and rank. It is the oldest of its own lane and rank.
-- ?1 queue, ?2 job type, ?3 rank, ?4 the last queue to read. Relies on job_claim.
SELECT queue, job_type, rank, eligible_at FROM job
WHERE state = 'pending' AND (queue, job_type, rank) > (?1, ?2, ?3) AND queue <= ?4
ORDER BY queue, job_type, rank, eligible_at LIMIT 1
