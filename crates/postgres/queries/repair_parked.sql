-- Marks queues as resumed that are not paused and have parked ready batches: the leader then returns these. No statement
-- leaves such a queue behind. $1 queues to examine. Relies on ready_parked and the primary key of queue.
WITH RECURSIVE hop AS (
    (SELECT queue FROM orchestrix.ready WHERE parked AND queue > '' ORDER BY queue, rank, eligible_at, first_id LIMIT 1)
    UNION ALL
    SELECT next.queue
    FROM hop CROSS JOIN LATERAL (
        SELECT r.queue FROM orchestrix.ready r WHERE r.parked AND r.queue > hop.queue
        ORDER BY r.queue, r.rank, r.eligible_at, r.first_id LIMIT 1) AS next
)
UPDATE orchestrix.queue SET resuming = true
WHERE NOT paused AND NOT resuming AND name = ANY (ARRAY(SELECT queue FROM hop LIMIT $1))
