-- Deletes a lane without claimable jobs. ?1 queue, ?2 job type, ?3 rank, ?4 ring position, ?5 tenant.
-- Uses the primary key.
DELETE FROM lane WHERE queue = ?1 AND job_type = ?2 AND rank = ?3 AND ring = ?4 AND tenant = ?5
