-- Marks dependencies as met, each once, and moves children whose last parent finished. A child that is gone is
-- skipped.
-- $1 children, $2 parents (sorted by child), $3 whether the child is held.
-- Relies on the primary keys. read_attempts.sql explains the form of the `edge` CTE.
WITH edge AS MATERIALIZED (
    SELECT e.* FROM unnest((SELECT $1::uuid[]), (SELECT $2::uuid[]), (SELECT $3::boolean[])) AS e (child, parent, hold)
    WHERE e.child BETWEEN '00000000-0000-0000-0000-000000000000' AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'
), turned AS (
    UPDATE orchestrix.dependency AS d SET met = true
    FROM edge e
    WHERE d.child = e.child AND d.parent = e.parent AND NOT d.met
    RETURNING d.child, e.hold
), child AS (
    SELECT child AS id, count(*)::integer AS n, bool_or(hold) AS hold FROM turned GROUP BY child
), locked AS MATERIALIZED (
    -- In the order of ids. After a lock wait this reads the newest version of the row.
    SELECT j.id, j.state, j.waits_for, j.eligible_at
    FROM orchestrix.job j WHERE j.id = ANY (ARRAY(SELECT id FROM child)) AND j.state IN ('created', 'blocked')
    ORDER BY j.id FOR NO KEY UPDATE
), next AS (
    SELECT l.id, l.state AS was, l.waits_for - c.n AS waits_for,
           CASE WHEN l.state = 'created' OR c.hold THEN 'created'
                WHEN l.waits_for > c.n THEN 'blocked'
                WHEN l.eligible_at > now() THEN 'scheduled'
                ELSE 'pending' END::orchestrix.job_state AS state
    FROM locked l JOIN child c USING (id)
), moved AS (
    UPDATE orchestrix.job AS j
    SET waits_for = n.waits_for, state = n.state,
        eligible_at = CASE n.state WHEN 'pending' THEN greatest(j.eligible_at, now()) ELSE j.eligible_at END,
        updated_at = CASE n.state WHEN n.was THEN j.updated_at ELSE now() END
    FROM next n
    WHERE j.id = n.id
    RETURNING j.id, j.queue, j.job_type, j.rank, j.eligible_at, n.was, j.state
), batched AS (
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, ids)
    SELECT rank, eligible_at, (array_agg(id ORDER BY id))[1], queue, job_type, array_agg(id ORDER BY id)
    FROM (SELECT m.*, (row_number() OVER (PARTITION BY queue, job_type, rank, eligible_at ORDER BY id) - 1) / 64 AS part
          FROM moved m WHERE m.state = 'pending') AS m
    GROUP BY queue, job_type, rank, eligible_at, part
), counted AS (
    INSERT INTO orchestrix.depth_delta (state, queues, counts)
    SELECT state, array_agg(queue), array_agg(n)
    FROM (
        SELECT queue, was, -count(*) FROM moved GROUP BY queue, was
        UNION ALL SELECT queue, state, count(*) FROM moved GROUP BY queue, state
    ) AS c (queue, state, n) GROUP BY state
)
SELECT state::text, queue, job_type, rank, eligible_at FROM moved
