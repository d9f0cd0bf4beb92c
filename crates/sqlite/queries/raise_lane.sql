-- Raises the claim key of a lane to that of its first job. ?1 queue, ?2 job type, ?3 rank, ?4 ring position, ?5 tenant,
-- ?6 eligible at, ?7 id. Uses the primary key.
UPDATE lane SET eligible_at = ?6, id = ?7
WHERE queue = ?1 AND job_type = ?2 AND rank = ?3 AND ring = ?4 AND tenant = ?5
