-- Lanes (queue and job type) that hold pending jobs, in order. $1 limit. Relies on ready_lane and the primary key of
-- job.
-- Hops through the index from lane to lane. A ready batch may list jobs that are no longer pending, so each lane is
-- checked.
WITH RECURSIVE hop AS (
    (SELECT queue, job_type FROM orchestrix.ready WHERE queue > '' ORDER BY queue, job_type, rank, ring, eligible_at, first_id LIMIT 1)
    UNION ALL
    SELECT next.queue, next.job_type
    FROM hop CROSS JOIN LATERAL (
        SELECT r.queue, r.job_type FROM orchestrix.ready r WHERE (r.queue, r.job_type) > (hop.queue, hop.job_type)
        ORDER BY r.queue, r.job_type, r.rank, r.ring, r.eligible_at, r.first_id LIMIT 1) AS next
)
SELECT hop.queue, hop.job_type
FROM hop CROSS JOIN LATERAL (
    SELECT FROM orchestrix.ready r
    WHERE r.queue = hop.queue AND r.job_type = hop.job_type
      AND (SELECT true FROM orchestrix.job j WHERE j.id = ANY (r.ids) AND j.state = 'pending' LIMIT 1)
    ORDER BY r.rank, r.ring, r.eligible_at, r.first_id LIMIT (SELECT 1)) AS pending
LIMIT $1
