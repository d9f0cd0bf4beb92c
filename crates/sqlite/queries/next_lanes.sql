-- Lanes of queues that are not paused, in claim order, after a claim key. ?1 rank, ?2 eligible at, ?3 id, ?4 limit.
-- Relies on lane_any.
SELECT rank, eligible_at, id, queue, job_type FROM lane
WHERE paused = 0 AND (rank, eligible_at, id) > (?1, ?2, ?3)
ORDER BY rank, eligible_at, id LIMIT ?4
