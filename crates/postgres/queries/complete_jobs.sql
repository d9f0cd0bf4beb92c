-- Completes attempts: checks the token on the job's row and moves that row to history in one statement.
-- $1 ids (sorted and unique, so that two batches lock in the same order), $2 counters, $3 secrets, $4 results.
-- Relies on the primary key. read_attempts.sql explains the form of the `item` CTE. Its arrays are unnested in the
-- select list, which streams them; in FROM, PostgreSQL would copy each array first.
-- Returns one row for the whole batch, or none: the ids, the ids that have dependents, and counts by lane for the
-- metrics.
WITH item AS (
    SELECT i.*
    FROM (SELECT unnest((SELECT $1::uuid[])) AS id, unnest((SELECT $2::integer[])) AS counter, unnest((SELECT $3::uuid[])) AS secret,
                 unnest((SELECT $4::text[])) AS result) AS i
    WHERE i.counter BETWEEN 0 AND 2147483647
), gone AS (
    DELETE FROM orchestrix.job AS j
    USING item i
    WHERE j.id = ANY (ARRAY[i.id]) AND j.lease_counter = i.counter AND j.lease_secret = i.secret AND j.state IN ('dispatched', 'running')
    RETURNING j.id, j.has_dependents, j.state, j.queue, j.job_type, j.created_at, j.eligible_at, j.started_at, j.expires_at, j.timeout_ms,
              j.lease_secret, j.lease_counter, j.lease_ms, j.rank, j.attempts, j.max_attempts, j.has_parents, j.payload_apart, j.tenant, j.worker,
              j.concurrency_key, j.rate_limit_key, j.options, j.progress, j.attempt_log, j.checkpoint, j.payload, i.result
), kept AS (
    INSERT INTO orchestrix.history (
        id, created_at, finished_at, eligible_at, started_at, expires_at, timeout_ms, lease_secret, state, lease_counter, lease_ms, rank,
        attempts, max_attempts, losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, concurrency_key,
        rate_limit_key, options, progress, attempt_log, checkpoint, payload, result)
    SELECT id, created_at, now(), eligible_at, started_at, expires_at, timeout_ms, lease_secret, 'completed', lease_counter, lease_ms, rank,
        attempts + 1, max_attempts, 0, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, concurrency_key,
        rate_limit_key, options, progress,
        -- A success at the first attempt needs no attempt record: the row holds the same facts.
        CASE WHEN attempt_log IS NOT NULL THEN
            CASE WHEN jsonb_array_length(attempt_log) >= 100 THEN attempt_log - 0 ELSE attempt_log END || jsonb_build_object(
                'attempt', attempts + 1, 'lease', lease_counter, 'secret', lease_secret, 'outcome', 'completed', 'to', 'completed',
                'worker', worker, 'startedAt', started_at, 'endedAt', now()) END,
        checkpoint, payload, result
    FROM gone
), settled AS (
    INSERT INTO orchestrix.settled SELECT id, false FROM gone WHERE has_dependents ON CONFLICT (id) DO UPDATE SET failed = false
), lane AS (
    SELECT queue, job_type, state, count(*) AS n FROM gone GROUP BY queue, job_type, state
), counted AS (
    INSERT INTO orchestrix.depth_delta (state, queues, counts)
    SELECT state, array_agg(queue), array_agg(n) FROM (SELECT queue, state, -sum(n)::bigint AS n FROM lane GROUP BY queue, state) AS c GROUP BY state
)
SELECT array_agg(id) AS ids, array_agg(id) FILTER (WHERE has_dependents) AS parents, (SELECT array_agg(queue) FROM lane) AS queues,
       (SELECT array_agg(job_type) FROM lane) AS job_types, (SELECT array_agg(n) FROM lane) AS counts
FROM gone HAVING count(*) > 0
