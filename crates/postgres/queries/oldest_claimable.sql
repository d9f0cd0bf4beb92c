-- How many milliseconds the oldest claimable job of each queue has waited. $1 first queue, $2 last queue, $3 hop
-- limit. Relies on ready_lane and the primary key of job.
-- The first entry of each lane, rank and tenant is its oldest job, so the scan hops from one to the next: the cost grows
-- with lanes, ranks and tenants, not with jobs. A ready batch may list jobs that are no longer pending: it is passed over.
WITH RECURSIVE hop AS (
    (SELECT queue, job_type, rank, ring FROM orchestrix.ready
     WHERE queue >= $1 AND queue <= $2 ORDER BY queue, job_type, rank, ring, eligible_at, first_id LIMIT 1)
    UNION ALL
    SELECT next.queue, next.job_type, next.rank, next.ring
    FROM hop CROSS JOIN LATERAL (
        SELECT r.queue, r.job_type, r.rank, r.ring FROM orchestrix.ready r
        WHERE (r.queue, r.job_type, r.rank, r.ring) > (hop.queue, hop.job_type, hop.rank, hop.ring) AND r.queue <= $2
        ORDER BY r.queue, r.job_type, r.rank, r.ring, r.eligible_at, r.first_id LIMIT 1) AS next
)
SELECT h.queue, (extract(epoch FROM now() - min(oldest.eligible_at)) * 1000)::float8 AS age_ms
FROM (SELECT * FROM hop LIMIT $3) AS h
CROSS JOIN LATERAL (
    SELECT r.eligible_at FROM orchestrix.ready r
    WHERE r.queue = h.queue AND r.job_type = h.job_type AND r.rank = h.rank AND r.ring = h.ring
      AND EXISTS (SELECT FROM orchestrix.job j WHERE j.id = ANY (r.ids) AND j.state = 'pending' AND j.rank = r.rank AND j.eligible_at = r.eligible_at)
    ORDER BY r.eligible_at, r.first_id LIMIT 1) AS oldest
GROUP BY h.queue
