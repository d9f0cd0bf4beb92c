-- Lanes (queue and job type) that hold pending jobs and are not yet known. $1 queues and $2 types of the known lanes
-- (sorted), $3 limit. Relies on job_claim.
-- Hops through the index in the gaps between known lanes: the cost grows with the number of new lanes, and the dead
-- entries at the head of a known lane are never walked.
WITH RECURSIVE known AS (
    SELECT queue COLLATE "C" AS queue, job_type COLLATE "C" AS job_type, n
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (queue, job_type, n)
), gap AS (
    -- No queue or job type sorts after a tilde.
    SELECT coalesce(low.queue, '') COLLATE "C" AS queue, coalesce(low.job_type, '') COLLATE "C" AS job_type,
           coalesce(high.queue, '~') COLLATE "C" AS end_queue, coalesce(high.job_type, '~') COLLATE "C" AS end_type
    FROM known low FULL JOIN known high ON high.n = low.n + 1
    UNION ALL SELECT '', '', '~', '~' WHERE NOT EXISTS (SELECT FROM known)
), hop AS (
    SELECT queue, job_type, end_queue, end_type, false AS found FROM gap
    UNION ALL
    SELECT next.queue, next.job_type, hop.end_queue, hop.end_type, true
    FROM hop CROSS JOIN LATERAL (
        -- Three index scans with an upper bound each. A single row comparison would bound the scan on its first column
        -- only and walk through the whole known lane that ends the gap.
        SELECT piece.* FROM (
            (SELECT j.queue, j.job_type FROM orchestrix.job j
             WHERE j.state = 'pending' AND j.queue = hop.queue AND j.job_type > hop.job_type
               AND j.job_type < CASE WHEN hop.queue = hop.end_queue THEN hop.end_type ELSE '~' END COLLATE "C"
             ORDER BY j.job_type LIMIT 1)
            UNION ALL
            (SELECT j.queue, j.job_type FROM orchestrix.job j
             WHERE j.state = 'pending' AND j.queue > hop.queue AND j.queue < hop.end_queue
             ORDER BY j.queue, j.job_type LIMIT 1)
            UNION ALL
            (SELECT j.queue, j.job_type FROM orchestrix.job j
             WHERE j.state = 'pending' AND hop.queue < hop.end_queue AND j.queue = hop.end_queue AND j.job_type < hop.end_type
             ORDER BY j.job_type LIMIT 1)) AS piece
        ORDER BY piece.queue, piece.job_type LIMIT 1) AS next
)
SELECT queue, job_type FROM hop WHERE found LIMIT $3
