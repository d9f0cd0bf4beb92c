-- Creates a lane, or lowers its claim key to that of a job that has entered it.
-- ?1 queue, ?2 job type, ?3 rank, ?4 eligible at, ?5 id. Uses the primary key.
INSERT INTO lane (queue, job_type, rank, eligible_at, id, paused)
VALUES (?1, ?2, ?3, ?4, ?5, EXISTS (SELECT 1 FROM queue WHERE name = ?1 AND paused))
ON CONFLICT (queue, job_type) DO UPDATE SET rank = ?3, eligible_at = ?4, id = ?5
    WHERE (?3, ?4, ?5) < (rank, eligible_at, lane.id)
