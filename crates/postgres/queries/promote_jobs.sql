-- Makes due jobs pending, the longest due first. $1 limit. Relies on job_due.
-- The limit is a sub-select: a planner that knows it and lacks statistics prefers to sort all due jobs.
WITH due AS MATERIALIZED (
    SELECT ctid AS place, id, queue, job_type, tenant, rank, eligible_at, state FROM orchestrix.job
    WHERE state IN ('scheduled', 'retrying') AND eligible_at <= now()
    ORDER BY eligible_at, id LIMIT (SELECT $1::bigint)
    FOR NO KEY UPDATE SKIP LOCKED
), promoted AS (
    UPDATE orchestrix.job SET state = 'pending', updated_at = now()
    WHERE ctid = ANY (ARRAY(SELECT place FROM due))
    RETURNING id
), moved AS (
    SELECT id, due.queue, due.job_type, due.tenant, due.rank, due.eligible_at, due.state FROM due JOIN promoted USING (id)
), batched AS (
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, (array_agg(id ORDER BY id))[1], queue, job_type, tenant, orchestrix.ring_position(tenant), array_agg(id ORDER BY id)
    FROM (SELECT m.*, (row_number() OVER (PARTITION BY queue, job_type, tenant, rank, eligible_at ORDER BY id) - 1) / 64 AS part
          FROM moved m) AS m
    GROUP BY queue, job_type, tenant, rank, eligible_at, part
), counted AS (
    INSERT INTO orchestrix.depth_delta (state, queues, counts)
    SELECT state, array_agg(queue), array_agg(n)
    FROM (
        SELECT queue, state, -count(*) FROM moved GROUP BY queue, state
        UNION ALL SELECT queue, 'pending', count(*) FROM moved GROUP BY queue
    ) AS c (queue, state, n) GROUP BY state
)
SELECT count(*) AS promoted, queue, job_type, min(rank) AS rank, min(eligible_at) AS eligible_at FROM moved GROUP BY queue, job_type
