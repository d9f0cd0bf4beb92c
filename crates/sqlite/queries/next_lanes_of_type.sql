-- Lanes of one type, of queues that are not paused, with the weight of their tenants: by rank, round the ring, and by
-- claim key. They follow ?1 rank, ?2 ring position, ?3 eligible at, ?4 id. ?5 limit, ?6 job type.
-- Relies on lane_by_type.
SELECT queue, job_type, rank, ring, tenant, eligible_at, id,
       coalesce((SELECT weight FROM tenant WHERE name = lane.tenant), 1) AS weight
FROM lane
WHERE paused = 0 AND job_type = ?6 AND (rank, ring, eligible_at, id) > (?1, ?2, ?3, ?4)
ORDER BY rank, ring, eligible_at, id LIMIT ?5
