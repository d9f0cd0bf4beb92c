-- Creates a lane, or lowers its claim key to that of a job that has entered it.
-- ?1 queue, ?2 job type, ?3 rank, ?4 ring position, ?5 tenant, ?6 eligible at, ?7 id. Uses the primary key.
INSERT INTO lane (queue, job_type, rank, ring, tenant, eligible_at, id, paused)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, EXISTS (SELECT 1 FROM queue WHERE name = ?1 AND paused))
ON CONFLICT (queue, job_type, rank, ring, tenant) DO UPDATE SET eligible_at = ?6, id = ?7
    WHERE (?6, ?7) < (eligible_at, lane.id)
