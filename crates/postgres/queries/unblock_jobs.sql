-- Marks dependencies as met, each once, moves children whose last parent finished, and forgets parents that no child
-- waits for any more. A child that is gone is skipped.
-- $1 children, $2 parents (sorted by child), $3 whether the child is held.
-- Relies on the primary keys and dependency_open. read_attempts.sql explains the form of the `edge` CTE.
WITH edge AS MATERIALIZED (
    SELECT e.* FROM unnest((SELECT $1::uuid[]), (SELECT $2::uuid[]), (SELECT $3::boolean[])) AS e (child, parent, hold)
    WHERE e.child BETWEEN '00000000-0000-0000-0000-000000000000' AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'
), held AS MATERIALIZED (
    -- Locks the children in the order of ids, before their dependencies: the order of a transaction that cancels some.
    SELECT j.id FROM edge e JOIN orchestrix.job j ON j.id = ANY (ARRAY[e.child]) AND j.state IN ('created', 'blocked') ORDER BY e.child FOR NO KEY UPDATE OF j
), turned AS (
    UPDATE orchestrix.dependency AS d SET met = true
    FROM edge e
    WHERE d.child = ANY (ARRAY[e.child]) AND d.parent = ANY (ARRAY[e.parent]) AND NOT d.met AND (SELECT count(*) FROM held) >= 0
    RETURNING d.child, d.parent, e.hold
), child AS MATERIALIZED (
    SELECT child AS id, count(*)::integer AS n, bool_or(hold) AS hold FROM turned GROUP BY child
), next AS MATERIALIZED (
    -- Reads the newest version of each row, also after a lock wait in `held`. A join of `held` and `child` would compare
    -- every pair of their rows.
    SELECT j.id, j.state AS was, j.waits_for - c.n AS waits_for,
           CASE WHEN j.state = 'created' OR c.hold THEN 'created'
                WHEN j.waits_for > c.n THEN 'blocked'
                WHEN j.eligible_at > now() THEN 'scheduled'
                ELSE 'pending' END::orchestrix.job_state AS state
    FROM child c JOIN orchestrix.job j ON j.id = ANY (ARRAY[c.id]) AND j.state IN ('created', 'blocked')
    ORDER BY c.id FOR NO KEY UPDATE OF j
), moved AS (
    UPDATE orchestrix.job AS j
    SET waits_for = n.waits_for, state = n.state,
        eligible_at = CASE n.state WHEN 'pending' THEN greatest(j.eligible_at, now()) ELSE j.eligible_at END,
        updated_at = CASE n.state WHEN n.was THEN j.updated_at ELSE now() END
    FROM next n
    WHERE j.id = ANY (ARRAY[n.id])
    RETURNING j.id, j.queue, j.job_type, j.tenant, j.rank, j.eligible_at, n.was, j.state
), batched AS (
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, (array_agg(id ORDER BY id))[1], queue, job_type, tenant, orchestrix.ring_position(tenant), array_agg(id ORDER BY id)
    FROM (SELECT m.*, (row_number() OVER (PARTITION BY queue, job_type, tenant, rank, eligible_at ORDER BY id) - 1) / 64 AS part
          FROM moved m WHERE m.state = 'pending') AS m
    GROUP BY queue, job_type, tenant, rank, eligible_at, part
), forgotten AS (
    -- No new dependency on a finished parent can appear. One that another transaction is marking keeps the parent, and
    -- the sweep forgets it.
    DELETE FROM orchestrix.settled
    WHERE id = ANY (ARRAY(
        SELECT s.id FROM orchestrix.settled s
        WHERE s.id = ANY (ARRAY(SELECT parent FROM turned))
          AND (SELECT d.child FROM orchestrix.dependency d
               WHERE d.parent = s.id AND NOT d.met AND (d.child, d.parent) NOT IN (SELECT child, parent FROM turned) LIMIT 1) IS NULL
        FOR UPDATE SKIP LOCKED))
), counted AS (
    INSERT INTO orchestrix.depth_delta (state, queues, counts)
    SELECT state, array_agg(queue), array_agg(n)
    FROM (
        SELECT queue, was, -count(*) FROM moved GROUP BY queue, was
        UNION ALL SELECT queue, state, count(*) FROM moved GROUP BY queue, state
    ) AS c (queue, state, n) GROUP BY state
)
SELECT state::text, queue, job_type, rank, eligible_at FROM moved
