-- Dependencies on finished parents that are not met yet, and those on the jobs that these parents cancel, and so on
-- down. $1 limit, $2 parents (null: any), $3 limit for each parent. Relies on dependency_open and the primary keys.
-- `level` is 0 for a dependency on a finished parent. A parent at a deeper level is the child of a dependency one level
-- above that `cancels` it. A graph whose branches meet again returns a dependency more than once.
-- The recursion stops at the limit: the outer query reads it row by row, and every row that it scans is returned. A
-- sort or UNION without ALL would scan more. LIMIT and OFFSET in the sub-selects keep each of them a search by index;
-- as joins they could become scans of a whole table, in every turn of the recursion.
WITH RECURSIVE open AS (
    SELECT 0 AS level, s.id AS parent, s.failed, c.child, j.state, j.lease_counter, j.attempts, j.losses, j.policy,
           s.failed AND j.policy = 'cancel' AND j.state IN ('created', 'blocked') AS cancels
    FROM (
        SELECT id, failed FROM orchestrix.settled WHERE id = ANY ($2::uuid[])
        UNION ALL SELECT id, failed FROM orchestrix.settled WHERE $2::uuid[] IS NULL AND id >= '00000000-0000-0000-0000-000000000000'
    ) AS s
    CROSS JOIN LATERAL (SELECT d.child FROM orchestrix.dependency d WHERE d.parent = s.id AND NOT d.met LIMIT $3) AS c
    LEFT JOIN LATERAL (
        SELECT state, lease_counter, attempts, losses, coalesce(options ->> 'onDependencyFailure', 'cancel') AS policy
        FROM orchestrix.job WHERE id = c.child LIMIT 1
    ) AS j ON true
    -- A parent that was redriven is unfinished.
    WHERE (SELECT p.id FROM orchestrix.job p WHERE p.id = s.id) IS NULL
    UNION ALL
    SELECT o.level + 1, o.child, true, c.child, j.state, j.lease_counter, j.attempts, j.losses, j.policy,
           j.policy = 'cancel' AND j.state IN ('created', 'blocked')
    FROM open o
    CROSS JOIN LATERAL (SELECT d.child FROM orchestrix.dependency d WHERE d.parent = o.child AND NOT d.met OFFSET 0) AS c
    LEFT JOIN LATERAL (
        SELECT state, lease_counter, attempts, losses, coalesce(options ->> 'onDependencyFailure', 'cancel') AS policy
        FROM orchestrix.job WHERE id = c.child LIMIT 1
    ) AS j ON true
    WHERE o.cancels
)
SELECT level, parent, child, coalesce(failed AND policy = 'hold', false) AS holds, coalesce(cancels, false) AS cancels, state::text, lease_counter,
       attempts, losses
FROM open LIMIT $1
