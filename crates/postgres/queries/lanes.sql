-- The lanes (a queue and a type) that hold claimable jobs, by hopping from one to the next in the index: the cost grows
-- with the lanes, not with the jobs. Relies on job_claim. $1 how many at most.
WITH RECURSIVE hop AS (
    (SELECT queue, job_type FROM orchestrix.job WHERE state = 'pending' ORDER BY queue, job_type LIMIT 1)
    UNION ALL
    SELECT next.queue, next.job_type
    FROM hop CROSS JOIN LATERAL (
        SELECT j.queue, j.job_type FROM orchestrix.job j
        WHERE j.state = 'pending' AND (j.queue, j.job_type) > (hop.queue, hop.job_type)
        ORDER BY j.queue, j.job_type LIMIT 1) AS next
)
SELECT queue, job_type FROM hop LIMIT $1
