-- How many unfinished jobs each queue holds, by state, and which queues are paused.
SELECT queue, state::text, sum(n)::bigint AS n, coalesce((SELECT q.paused FROM orchestrix.queue q WHERE q.name = c.queue), false) AS paused
FROM (SELECT queue, state, n FROM orchestrix.depth UNION ALL SELECT queue, state, n FROM orchestrix.depth_delta) AS c
GROUP BY queue, state HAVING sum(n) > 0
UNION ALL
SELECT name, NULL, 0, true FROM orchestrix.queue WHERE paused
ORDER BY 1
