-- Enqueues jobs; a job whose idempotency key exists is left out of the result. $1 ids, $2 queues, $3 types, $4
-- tenants, $5 ranks, $6 max attempts, $7 inline payloads, $8 payloads for the table `payload`, $9 specs: every option
-- that differs from its default, null for none. Relies on the primary keys.
-- A key that another transaction is inserting is waited for. Keys are inserted in sorted order, so that two batches
-- never deadlock.
WITH item AS (
    SELECT i.id, i.queue, i.job_type, i.tenant, i.rank, i.max_attempts, i.payload, i.body, i.spec,
           CASE WHEN i.spec IS NULL THEN now()
                WHEN i.spec ? 'delayMs' THEN now() + (i.spec ->> 'delayMs')::bigint * interval '1 millisecond'
                ELSE greatest(now(), (i.spec ->> 'runAt')::timestamptz) END AS eligible_at
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::int2[], $6::int2[], $7::text[], $8::text[], $9::text[]::jsonb[])
        AS i (id, queue, job_type, tenant, rank, max_attempts, payload, body, spec)
), reserved AS (
    INSERT INTO orchestrix.idempotency (tenant, job_type, key, job_id, fingerprint)
    SELECT tenant, job_type, spec ->> 'key', id, (spec ->> 'fingerprint')::uuid FROM item WHERE spec ? 'key' ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING
    RETURNING job_id
), fresh AS (
    SELECT * FROM item WHERE spec IS NULL OR NOT spec ? 'key' OR id IN (SELECT job_id FROM reserved)
), apart AS (
    INSERT INTO orchestrix.payload SELECT id, body FROM fresh WHERE body IS NOT NULL
), recorded AS (
    INSERT INTO orchestrix.job (
        id, created_at, updated_at, eligible_at, expires_at, timeout_ms, state, lease_ms, waits_for, rank, max_attempts,
        has_parents, has_dependents, payload_apart, queue, job_type, tenant, concurrency_key, rate_limit_key, options, payload)
    SELECT id, now(), now(), eligible_at, (spec ->> 'expiresAt')::timestamptz, (spec ->> 'timeoutMs')::bigint,
           CASE WHEN spec IS NULL THEN 'pending'
                WHEN spec ? 'hold' THEN 'created'
                WHEN spec ? 'waitsFor' THEN 'blocked'
                WHEN eligible_at > now() THEN 'scheduled'
                ELSE 'pending' END::orchestrix.job_state,
           coalesce((spec ->> 'leaseMs')::integer, 30000), coalesce((spec ->> 'waitsFor')::integer, 0), rank, max_attempts,
           coalesce(spec ? 'hasParents', false), coalesce(spec ? 'hasDependents', false), body IS NOT NULL,
           queue, job_type, tenant, spec ->> 'concurrencyKey', spec ->> 'rateLimitKey', spec -> 'options', payload
    FROM fresh
    RETURNING id, queue, job_type, tenant, rank, eligible_at, state
), batched AS (
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, (array_agg(id ORDER BY id))[1], queue, job_type, tenant, orchestrix.ring_position(tenant), array_agg(id ORDER BY id)
    FROM (SELECT m.*, (row_number() OVER (PARTITION BY queue, job_type, tenant, rank, eligible_at ORDER BY id) - 1) / 64 AS part
          FROM recorded m WHERE m.state = 'pending') AS m
    GROUP BY queue, job_type, tenant, rank, eligible_at, part
), counted AS (
    INSERT INTO orchestrix.depth_delta (state, queues, counts)
    SELECT state, array_agg(queue), array_agg(n) FROM (SELECT queue, state, count(*) AS n FROM recorded GROUP BY queue, state) AS c GROUP BY state
)
SELECT id, state::text FROM recorded
