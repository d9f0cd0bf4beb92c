-- Redrives dead and cancelled jobs with at least one attempt left. $1 ids (sorted). Relies on the primary keys.
WITH risen AS (
    DELETE FROM orchestrix.dead WHERE id = ANY ($1::uuid[]) RETURNING *
), recalled AS (
    DELETE FROM orchestrix.history WHERE id = ANY ($1::uuid[]) AND state = 'cancelled' RETURNING *
), again AS (
    INSERT INTO orchestrix.job (
        id, created_at, updated_at, eligible_at, started_at, timeout_ms, lease_secret, state, lease_counter, lease_ms, rank, attempts,
        max_attempts, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, concurrency_key, rate_limit_key, options,
        attempt_log, checkpoint, payload)
    SELECT id, created_at, now(), now(), started_at, timeout_ms, lease_secret, 'pending', lease_counter, lease_ms, rank, attempts,
        greatest(max_attempts, attempts + 1), has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, concurrency_key,
        rate_limit_key, options, attempt_log, checkpoint, payload
    FROM (SELECT * FROM risen UNION ALL SELECT * FROM recalled) AS f
    RETURNING id, queue, job_type, tenant, rank, eligible_at
), batched AS (
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, (array_agg(id ORDER BY id))[1], queue, job_type, tenant, orchestrix.ring_position(tenant), array_agg(id ORDER BY id)
    FROM (SELECT m.*, (row_number() OVER (PARTITION BY queue, job_type, tenant, rank, eligible_at ORDER BY id) - 1) / 64 AS part
          FROM again m) AS m
    GROUP BY queue, job_type, tenant, rank, eligible_at, part
), unsettled AS (
    -- The job is unfinished again: dependents that were not resolved yet wait for its next end.
    DELETE FROM orchestrix.settled WHERE id IN (SELECT id FROM again)
), counted AS (
    INSERT INTO orchestrix.depth_delta (state, queues, counts)
    SELECT 'pending', array_agg(queue), array_agg(n) FROM (SELECT queue, count(*) AS n FROM again GROUP BY queue) AS c HAVING count(*) > 0
), remembered AS (
    -- A job redriven twice in the same microsecond has one note.
    INSERT INTO orchestrix.revived (at, id) SELECT now(), id FROM again ORDER BY id ON CONFLICT DO NOTHING
)
SELECT id, queue, job_type, rank, eligible_at FROM again
