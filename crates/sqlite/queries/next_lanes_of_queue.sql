-- Lanes of one queue, unless it is paused, in claim order, after a claim key. ?1 rank, ?2 eligible at, ?3 id, ?4 limit,
-- ?5 queue. Relies on lane_by_queue.
SELECT rank, eligible_at, id, queue, job_type FROM lane
WHERE paused = 0 AND queue = ?5 AND (rank, eligible_at, id) > (?1, ?2, ?3)
ORDER BY rank, eligible_at, id LIMIT ?4
