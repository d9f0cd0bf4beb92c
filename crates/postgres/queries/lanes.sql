-- Lanes (a queue and a type) that hold claimable jobs, besides those that are known: the gaps between known ones are
-- hopped through in the index, so the cost grows with the lanes that are new, and the dead head of a known lane is never
-- walked. $1 queues, $2 types of known lanes (sorted), $3 how many at most. Relies on job_claim.
WITH RECURSIVE known AS (
    SELECT queue COLLATE "C" AS queue, job_type COLLATE "C" AS job_type, n
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (queue, job_type, n)
), gap AS (
    -- No name begins with a tilde or anything after it.
    SELECT coalesce(low.queue, '') COLLATE "C" AS queue, coalesce(low.job_type, '') COLLATE "C" AS job_type,
           coalesce(high.queue, '~') COLLATE "C" AS end_queue, coalesce(high.job_type, '~') COLLATE "C" AS end_type
    FROM known low FULL JOIN known high ON high.n = low.n + 1
    UNION ALL SELECT '', '', '~', '~' WHERE NOT EXISTS (SELECT FROM known)
), hop AS (
    SELECT queue, job_type, end_queue, end_type, false AS found FROM gap
    UNION ALL
    SELECT next.queue, next.job_type, hop.end_queue, hop.end_type, true
    FROM hop CROSS JOIN LATERAL (
        SELECT j.queue, j.job_type FROM orchestrix.job j
        WHERE j.state = 'pending' AND (j.queue, j.job_type) > (hop.queue, hop.job_type) AND (j.queue, j.job_type) < (hop.end_queue, hop.end_type)
        ORDER BY j.queue, j.job_type LIMIT 1) AS next
)
SELECT queue, job_type FROM hop WHERE found LIMIT $3
