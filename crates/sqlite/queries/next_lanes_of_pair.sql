-- Lanes of one queue and type, with the weight of their tenants, by rank and round the ring. They follow ?1 rank,
-- ?2 ring position, ?3 tenant. ?4 limit, ?5 queue, ?6 job type. The caller knows that the queue is not paused.
-- Uses the primary key.
SELECT queue, job_type, rank, ring, tenant, eligible_at, id,
       coalesce((SELECT weight FROM tenant WHERE name = lane.tenant), 1) AS weight
FROM lane
WHERE queue = ?5 AND job_type = ?6 AND (rank, ring, tenant) > (?1, ?2, ?3)
ORDER BY rank, ring, tenant LIMIT ?4
