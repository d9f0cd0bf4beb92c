-- The unfinished jobs of a page of queues by state, and which queues are paused: at least one row for each queue.
-- $1 queue to start after, $2 limit. Relies on the primary keys; few depth changes are unfolded at any time.
-- A queue has at most ten states, so ten times as many rows cover enough queues. DISTINCT would read the whole table
-- while it has no statistics.
WITH page AS MATERIALIZED (
    SELECT queue FROM (
        (SELECT queue FROM orchestrix.depth WHERE queue > $1 ORDER BY queue, state LIMIT $2 * 10)
        UNION
        (SELECT DISTINCT c.queue COLLATE "C" FROM orchestrix.depth_delta d CROSS JOIN unnest(d.queues) AS c (queue)
         WHERE c.queue COLLATE "C" > $1 ORDER BY 1 LIMIT $2)
        UNION
        (SELECT name FROM orchestrix.queue WHERE paused AND name > $1 ORDER BY name LIMIT $2)
    ) AS named ORDER BY queue LIMIT $2
), changes AS (
    SELECT queue, state, n FROM orchestrix.depth WHERE queue > $1 AND queue <= (SELECT max(queue) FROM page)
    UNION ALL
    SELECT c.queue, d.state, c.n FROM orchestrix.depth_delta d CROSS JOIN unnest(d.queues, d.counts) AS c (queue, n)
    WHERE c.queue COLLATE "C" > $1 AND c.queue COLLATE "C" <= (SELECT max(queue) FROM page)
), counts AS (
    SELECT queue, state, sum(n)::bigint AS n FROM changes GROUP BY queue, state HAVING sum(n) > 0
)
SELECT p.queue, c.state::text, coalesce(c.n, 0) AS n, coalesce((SELECT q.paused FROM orchestrix.queue q WHERE q.name = p.queue), false) AS paused
FROM page p LEFT JOIN counts c ON c.queue = p.queue
ORDER BY p.queue
