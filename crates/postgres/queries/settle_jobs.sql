-- Writes transitions of jobs that are unchanged since they were read: same lease counter, secret, state and cancel
-- request. $1 ids (sorted), $2 counters, $3 secrets (null: not leased), $4 states before, $5 whether a cancel was
-- requested, $6 guards (`token`: nothing more; `expired`: the lease must have expired; `overdue`: the attempt must
-- have timed out), $7 states after, $8 milliseconds until eligible, $9 attempts, $10 losses, $11 reasons, $12
-- outcomes of the attempt (null: no attempt ended), $13 errors. Returns the jobs that were written.
-- Relies on the primary key. read_attempts.sql explains the form of the `asked` CTE.
WITH asked AS MATERIALIZED (
    SELECT i.*
    FROM unnest((SELECT $1::uuid[]), (SELECT $2::integer[]), (SELECT $3::uuid[]), (SELECT $4::text[]::orchestrix.job_state[]),
                (SELECT $5::boolean[]), (SELECT $6::text[]), (SELECT $7::text[]::orchestrix.job_state[]), (SELECT $8::bigint[]),
                (SELECT $9::int2[]), (SELECT $10::int2[]), (SELECT $11::text[]), (SELECT $12::text[]), (SELECT $13::text[]))
        AS i (id, counter, secret, was, cancel_seen, guard, goes_to, delay_ms, attempts, losses, reason, outcome, error)
    WHERE i.counter BETWEEN 0 AND 2147483647
), held AS MATERIALIZED (
    -- Locks all rows in the order of ids before any write. `moved` is written before `gone`, so two batches would
    -- deadlock if one moves the job that the other deletes, and the reverse.
    SELECT j.id FROM asked a JOIN orchestrix.job j ON j.id = ANY (ARRAY[a.id]) AND j.lease_counter = a.counter ORDER BY a.id FOR UPDATE OF j
), item AS MATERIALIZED (
    SELECT a.*, a.goes_to >= 'completed' AS ends FROM asked a WHERE (SELECT count(*) FROM held) > 0
), moved AS (
    UPDATE orchestrix.job AS j
    SET state = i.goes_to, updated_at = now(), eligible_at = now() + i.delay_ms * interval '1 millisecond',
        attempts = i.attempts, losses = i.losses, lease_expires_at = NULL, timeout_at = NULL, cancel_requested = false,
        attempt_log = orchestrix.add_attempt(j, i.outcome, i.goes_to, i.error)
    FROM item i
    WHERE NOT i.ends AND j.id = ANY (ARRAY[i.id]) AND j.lease_counter = i.counter AND j.state = i.was AND j.cancel_requested = i.cancel_seen
      AND (i.secret IS NULL OR j.lease_secret = i.secret)
      AND (i.guard <> 'expired' OR j.lease_expires_at <= now()) AND (i.guard <> 'overdue' OR j.timeout_at <= now())
    RETURNING j.id, j.lease_counter, j.queue, j.job_type, j.tenant, j.rank, j.eligible_at, i.was, i.goes_to, j.has_dependents
), gone AS (
    DELETE FROM orchestrix.job AS j
    USING item i
    WHERE i.ends AND j.id = ANY (ARRAY[i.id]) AND j.lease_counter = i.counter AND j.state = i.was AND j.cancel_requested = i.cancel_seen
      AND (i.secret IS NULL OR j.lease_secret = i.secret)
      AND (i.guard <> 'expired' OR j.lease_expires_at <= now()) AND (i.guard <> 'overdue' OR j.timeout_at <= now())
    RETURNING j.*, i.was, i.goes_to, i.attempts AS attempts_after, i.losses AS losses_after, i.reason,
        orchestrix.add_attempt(j, i.outcome, i.goes_to, i.error) AS log_after
), dead AS (
    INSERT INTO orchestrix.dead (
        id, created_at, finished_at, eligible_at, started_at, expires_at, timeout_ms, lease_secret, state, lease_counter, lease_ms, rank,
        attempts, max_attempts, losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, concurrency_key,
        rate_limit_key, reason, options, progress, attempt_log, checkpoint, payload)
    SELECT id, created_at, now(), eligible_at, started_at, expires_at, timeout_ms, lease_secret, goes_to, lease_counter, lease_ms, rank,
        attempts_after, max_attempts, losses_after, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, concurrency_key,
        rate_limit_key, reason, options, progress, log_after, checkpoint, payload
    FROM gone WHERE goes_to = 'dead'
), kept AS (
    INSERT INTO orchestrix.history (
        id, created_at, finished_at, eligible_at, started_at, expires_at, timeout_ms, lease_secret, state, lease_counter, lease_ms, rank,
        attempts, max_attempts, losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, concurrency_key,
        rate_limit_key, reason, options, progress, attempt_log, checkpoint, payload)
    SELECT id, created_at, now(), eligible_at, started_at, expires_at, timeout_ms, lease_secret, goes_to, lease_counter, lease_ms, rank,
        attempts_after, max_attempts, losses_after, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, concurrency_key,
        rate_limit_key, reason, options, progress, log_after, checkpoint, payload
    FROM gone WHERE goes_to = 'cancelled'
), settled AS (
    INSERT INTO orchestrix.settled SELECT id, true FROM gone WHERE has_dependents ON CONFLICT (id) DO UPDATE SET failed = true
), done AS (
    SELECT id, lease_counter, queue, job_type, rank, eligible_at, was, goes_to, has_dependents FROM moved
    UNION ALL SELECT id, lease_counter, queue, job_type, rank, eligible_at, was, goes_to, has_dependents FROM gone
), batched AS (
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, (array_agg(id ORDER BY id))[1], queue, job_type, tenant, orchestrix.ring_position(tenant), array_agg(id ORDER BY id)
    FROM (SELECT m.*, (row_number() OVER (PARTITION BY queue, job_type, tenant, rank, eligible_at ORDER BY id) - 1) / 64 AS part
          FROM moved m WHERE m.goes_to = 'pending') AS m
    GROUP BY queue, job_type, tenant, rank, eligible_at, part
), counted AS (
    INSERT INTO orchestrix.depth_delta (state, queues, counts)
    SELECT state, array_agg(queue), array_agg(n)
    FROM (
        SELECT queue, was, -count(*) FROM done GROUP BY queue, was
        UNION ALL SELECT queue, goes_to, count(*) FROM done WHERE goes_to < 'completed' GROUP BY queue, goes_to
    ) AS c (queue, state, n) GROUP BY state
)
SELECT id, lease_counter, goes_to::text AS state, has_dependents, queue, job_type, rank, eligible_at FROM done
