-- How many unfinished jobs one queue holds, by state, and whether it is paused; in the columns of depths.sql. $1 queue. Relies on the primary
-- keys; changes that are not folded yet are few.
SELECT $1::text, c.state::text, c.n, coalesce((SELECT q.paused FROM orchestrix.queue q WHERE q.name = $1), false) AS paused
FROM (
    SELECT state, sum(n)::bigint AS n FROM (
        SELECT state, n FROM orchestrix.depth WHERE queue = $1 UNION ALL SELECT state, n FROM orchestrix.depth_delta WHERE queue = $1
    ) AS changes GROUP BY state HAVING sum(n) > 0
) AS c
UNION ALL
SELECT name, NULL, 0, true FROM orchestrix.queue WHERE name = $1 AND paused
