-- Ends attempts that did their work: the token is checked on the job's own row in the statement that moves it to history.
-- $1 ids (sorted, so that two batches lock in one order, and each once), $2 counters, $3 secrets, $4 results. Relies on the primary
-- key; why the items are wrapped as they are is said in examine.sql. They are unnested in the list of columns, which hands them on
-- one by one: in FROM each array would be copied first. Of `gone`, what is read most stands first. The answer is one row
-- for all, or none: a row for each would cost more than it says. How many of each queue and type it were is for the metrics.
WITH item AS (
    SELECT i.*
    FROM (SELECT unnest((SELECT $1::uuid[])) AS id, unnest((SELECT $2::integer[])) AS counter, unnest((SELECT $3::uuid[])) AS secret,
                 unnest((SELECT $4::text[])) AS result) AS i
    WHERE i.counter BETWEEN 0 AND 2147483647
), gone AS (
    DELETE FROM orchestrix.job AS j
    USING item i
    WHERE j.id = i.id AND j.lease_counter = i.counter AND j.lease_secret = i.secret AND j.state IN ('dispatched', 'running')
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
        -- A first success needs no record of its own: the row says it all.
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
    INSERT INTO orchestrix.depth_delta SELECT queue, state, -sum(n)::bigint FROM lane GROUP BY queue, state
)
SELECT array_agg(id), array_agg(id) FILTER (WHERE has_dependents), (SELECT array_agg(queue) FROM lane),
       (SELECT array_agg(job_type) FROM lane), (SELECT array_agg(n) FROM lane)
FROM gone HAVING count(*) > 0
