-- Raises the claim key of a lane to that of its first job. ?1 queue, ?2 job type, ?3 rank, ?4 eligible at, ?5 id.
-- Uses the primary key.
UPDATE lane SET rank = ?3, eligible_at = ?4, id = ?5 WHERE queue = ?1 AND job_type = ?2
