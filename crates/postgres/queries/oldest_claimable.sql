-- How many milliseconds the oldest claimable job of each queue has waited. $1 first queue, $2 last queue, $3 hop
-- limit.
-- Relies on job_claim. The first entry of each lane and rank is its oldest job, so the scan hops from one to the
-- next: the cost grows with lanes and ranks, not with jobs.
WITH RECURSIVE hop AS (
    (SELECT queue, job_type, rank, eligible_at FROM orchestrix.job
     WHERE state = 'pending' AND queue >= $1 AND queue <= $2 ORDER BY queue, job_type, rank, eligible_at, id LIMIT 1)
    UNION ALL
    SELECT next.queue, next.job_type, next.rank, next.eligible_at
    FROM hop CROSS JOIN LATERAL (
        SELECT j.queue, j.job_type, j.rank, j.eligible_at FROM orchestrix.job j
        WHERE j.state = 'pending' AND (j.queue, j.job_type, j.rank) > (hop.queue, hop.job_type, hop.rank) AND j.queue <= $2
        ORDER BY j.queue, j.job_type, j.rank, j.eligible_at, j.id LIMIT 1) AS next
)
SELECT queue, (extract(epoch FROM now() - min(eligible_at)) * 1000)::float8 AS age_ms FROM (SELECT * FROM hop LIMIT $3) AS h GROUP BY queue
