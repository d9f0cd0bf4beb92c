-- Leases pending jobs of several lanes and skips rows that other claims have locked. Relies on job_claim.
-- $1 queues, $2 types, $3 ranks, $4 times, $5 ids (where the scan of each lane starts), $6 quotas, $7 worker,
-- $8 secret.
-- The start is a row comparison, so the index scan begins there and does not walk the dead entries at the head.
WITH lane AS MATERIALIZED (
    SELECT *
    FROM unnest($1::text[], $2::text[], $3::int2[], $4::timestamptz[], $5::uuid[], $6::integer[])
        AS l (queue, job_type, rank, eligible_at, id, quota)
    WHERE NOT EXISTS (SELECT FROM orchestrix.queue q WHERE q.name = l.queue AND q.paused)
), picked AS MATERIALIZED (
    SELECT p.place
    FROM lane l
    CROSS JOIN LATERAL (
        SELECT j.ctid AS place FROM orchestrix.job j
        WHERE j.state = 'pending' AND j.queue = l.queue AND j.job_type = l.job_type
          AND (j.rank, j.eligible_at, j.id) > (l.rank, l.eligible_at, l.id)
          AND (j.expires_at IS NULL OR j.expires_at > now() OR j.started_at IS NOT NULL)
        ORDER BY j.rank, j.eligible_at, j.id LIMIT l.quota
        FOR NO KEY UPDATE SKIP LOCKED) AS p
), taken AS (
    -- By ctid: the rows are locked and cannot move, so no index is searched again.
    UPDATE orchestrix.job AS j
    SET state = 'running', updated_at = now(), started_at = now(), worker = $7::text, progress = NULL,
        lease_counter = j.lease_counter + 1, lease_secret = $8::uuid, lease_expires_at = now() + j.lease_ms * interval '1 millisecond',
        timeout_at = now() + j.timeout_ms * interval '1 millisecond'
    WHERE j.ctid = ANY (ARRAY(SELECT place FROM picked))
    RETURNING j.id, j.lease_counter, j.lease_ms, j.timeout_ms, j.lease_expires_at, j.eligible_at, j.rank, j.attempts, j.max_attempts,
              j.has_parents, j.payload_apart, j.queue, j.job_type, j.tenant, j.options, j.checkpoint, j.payload
), counted AS (
    INSERT INTO orchestrix.depth_delta
    SELECT t.queue, s.state, s.sign * t.n
    FROM (SELECT queue, count(*) AS n FROM taken GROUP BY queue) AS t
    CROSS JOIN (VALUES ('pending'::orchestrix.job_state, -1), ('running', 1)) AS s (state, sign)
)
SELECT id, lease_counter, lease_ms, timeout_ms, lease_expires_at, eligible_at, rank, attempts, max_attempts, has_parents, queue, job_type,
       tenant, options ->> 'correlationId' AS correlation_id, options ->> 'traceparent' AS traceparent, checkpoint, payload, payload_apart
FROM taken
