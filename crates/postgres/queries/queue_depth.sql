-- The unfinished jobs of one queue by state, and whether the queue is paused, with the columns of queue_depths.sql.
-- $1 queue. Relies on the primary keys; few depth changes are unfolded at any time.
SELECT $1::text AS queue, c.state::text, c.n, coalesce((SELECT q.paused FROM orchestrix.queue q WHERE q.name = $1), false) AS paused
FROM (
    SELECT state, sum(n)::bigint AS n FROM (
        SELECT state, n FROM orchestrix.depth WHERE queue = $1 UNION ALL
        SELECT d.state, c.n FROM orchestrix.depth_delta d CROSS JOIN unnest(d.queues, d.counts) AS c (queue, n) WHERE c.queue = $1
    ) AS changes GROUP BY state HAVING sum(n) > 0
) AS c
UNION ALL
SELECT name, NULL, 0, true FROM orchestrix.queue WHERE name = $1 AND paused
