-- The first claimable job at or after a lane and rank, which is the oldest of its lane and rank. ?1 queue, ?2 type, ?3 rank.
-- Relies on job_claim.
SELECT queue, job_type, rank, eligible_at FROM job
WHERE state = 'pending' AND (queue, job_type, rank) > (?1, ?2, ?3) ORDER BY queue, job_type, rank, eligible_at LIMIT 1
