-- Deletes a lane without claimable jobs. ?1 queue, ?2 job type.
-- Uses the primary key.
DELETE FROM lane WHERE queue = ?1 AND job_type = ?2
