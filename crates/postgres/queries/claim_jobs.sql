-- Leases the first pending jobs of the requested queues and types, and skips rows that other claims have locked.
-- $1 what the scans select by: 0 nothing, 1 the type, 2 the queue, 3 both. $2 queues, $3 types, $4 ranks, $5 times and
-- $6 ids: the scans, and the ready batch that each starts at. $7 batches to read per scan, $8 jobs wanted, $9 worker,
-- $10 secret, $11 queues and $12 types to skip other batches by, null for none.
-- Relies on ready_order, ready_type, ready_queue, ready_lane and the primary key of job.
-- A scan that returns as many batches as it may read has more, so the order over all scans is known only up to its
-- last batch. The horizon is the first of these: jobs after it are left to the next round.
-- The start is a row comparison, so the index scan begins there and does not walk the dead entries before it.
-- Returns the jobs, and one row without an id: the horizon, if any, and how many batches and jobs were read.
WITH scan AS MATERIALIZED (
    SELECT s.* FROM unnest($2::text[], $3::text[], $4::int2[], $5::timestamptz[], $6::uuid[]) WITH ORDINALITY
        AS s (queue, job_type, rank, eligible_at, id, n)
    WHERE NOT EXISTS (SELECT FROM orchestrix.queue q WHERE q.name = s.queue AND q.paused)
), found AS MATERIALIZED (
    SELECT s.n, b.*, row_number() OVER (PARTITION BY s.n ORDER BY b.rank, b.eligible_at, b.first_id) AS nth
    FROM scan s
    CROSS JOIN LATERAL (
        (SELECT ctid AS place, rank, eligible_at, first_id, queue, job_type, ids FROM orchestrix.ready
         WHERE $1::int2 = 0 AND NOT parked AND (rank, eligible_at, first_id) >= (s.rank, s.eligible_at, s.id)
         ORDER BY rank, eligible_at, first_id LIMIT (SELECT $7::bigint))
        UNION ALL
        (SELECT ctid AS place, rank, eligible_at, first_id, queue, job_type, ids FROM orchestrix.ready
         WHERE $1::int2 = 1 AND NOT parked AND job_type = s.job_type AND (rank, eligible_at, first_id) >= (s.rank, s.eligible_at, s.id)
         ORDER BY rank, eligible_at, first_id LIMIT (SELECT $7::bigint))
        UNION ALL
        (SELECT ctid AS place, rank, eligible_at, first_id, queue, job_type, ids FROM orchestrix.ready
         WHERE $1::int2 = 2 AND NOT parked AND queue = s.queue AND (rank, eligible_at, first_id) >= (s.rank, s.eligible_at, s.id)
         ORDER BY rank, eligible_at, first_id LIMIT (SELECT $7::bigint))
        UNION ALL
        (SELECT ctid AS place, rank, eligible_at, first_id, queue, job_type, ids FROM orchestrix.ready
         WHERE $1::int2 = 3 AND NOT parked AND queue = s.queue AND job_type = s.job_type
           AND (rank, eligible_at, first_id) >= (s.rank, s.eligible_at, s.id)
         ORDER BY rank, eligible_at, first_id LIMIT (SELECT $7::bigint))) AS b
), horizon AS MATERIALIZED (
    SELECT rank, eligible_at, first_id FROM found WHERE nth = $7 ORDER BY rank, eligible_at, first_id LIMIT 1
), paused AS MATERIALIZED (
    -- Locked, so that the queue is not resumed before its batches are parked.
    SELECT name FROM orchestrix.queue WHERE paused AND name = ANY (ARRAY(SELECT queue FROM found)) FOR SHARE
), visited AS MATERIALIZED (
    SELECT f.* FROM found f
    WHERE ($11::text[] IS NULL OR f.queue = ANY ($11)) AND ($12::text[] IS NULL OR f.job_type = ANY ($12))
      AND NOT EXISTS (SELECT FROM paused p WHERE p.name = f.queue)
      AND NOT EXISTS (SELECT FROM horizon h WHERE (f.rank, f.eligible_at, f.first_id) > (h.rank, h.eligible_at, h.first_id))
), candidate AS MATERIALIZED (
    SELECT v.place, v.rank, v.eligible_at, i.id
    FROM visited v CROSS JOIN unnest(v.ids) AS i (id)
    WHERE NOT EXISTS (SELECT FROM horizon h WHERE (v.rank, v.eligible_at, i.id) > (h.rank, h.eligible_at, h.first_id))
    ORDER BY v.rank, v.eligible_at, i.id
), picked AS MATERIALIZED (
    SELECT c.place AS batch, c.id, j.place
    FROM candidate c
    CROSS JOIN LATERAL (
        SELECT j.ctid AS place FROM orchestrix.job j
        WHERE j.id = c.id AND j.state = 'pending' AND j.rank = c.rank AND j.eligible_at = c.eligible_at
          AND (j.expires_at IS NULL OR j.expires_at > now() OR j.started_at IS NOT NULL)
        FOR NO KEY UPDATE SKIP LOCKED) AS j
    LIMIT (SELECT $8::bigint)
), taken AS (
    -- By ctid: the rows are locked and cannot move, so no index is searched again.
    UPDATE orchestrix.job AS j
    SET state = 'running', updated_at = now(), started_at = now(), worker = $9::text, progress = NULL,
        lease_counter = j.lease_counter + 1, lease_secret = $10::uuid, lease_expires_at = now() + j.lease_ms * interval '1 millisecond',
        timeout_at = now() + j.timeout_ms * interval '1 millisecond'
    WHERE j.ctid = ANY (ARRAY(SELECT place FROM picked))
    RETURNING j.id, j.lease_counter, j.lease_ms, j.timeout_ms, j.lease_expires_at, j.eligible_at, j.rank, j.attempts, j.max_attempts,
              j.has_parents, j.payload_apart, j.queue, j.job_type, j.tenant, j.options, j.checkpoint, j.payload
), emptied AS MATERIALIZED (
    -- Batches that list no pending job any more. Decided by the jobs that were leased, not by those that were locked:
    -- a row that changed after this statement began is locked but not leased.
    SELECT v.place
    FROM visited v
    LEFT JOIN (SELECT p.batch, count(*) AS jobs FROM picked p JOIN taken t USING (id) GROUP BY p.batch) AS l ON l.batch = v.place
    WHERE l.jobs = cardinality(v.ids)
       OR NOT EXISTS (
            SELECT FROM orchestrix.job j
            WHERE j.id = ANY (v.ids) AND j.state = 'pending' AND j.rank = v.rank AND j.eligible_at = v.eligible_at
              AND j.id NOT IN (SELECT id FROM taken))
), removed AS (
    DELETE FROM orchestrix.ready
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM orchestrix.ready WHERE ctid = ANY (ARRAY(SELECT place FROM emptied)) FOR UPDATE SKIP LOCKED))
), parking AS (
    UPDATE orchestrix.ready SET parked = true
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM orchestrix.ready
        WHERE ctid = ANY (ARRAY(SELECT f.place FROM found f JOIN paused p ON p.name = f.queue)) FOR UPDATE SKIP LOCKED))
), counted AS (
    INSERT INTO orchestrix.depth_delta
    SELECT t.queue, s.state, s.sign * t.n
    FROM (SELECT queue, count(*) AS n FROM taken GROUP BY queue) AS t
    CROSS JOIN (VALUES ('pending'::orchestrix.job_state, -1), ('running', 1)) AS s (state, sign)
)
SELECT id, lease_counter, lease_ms, timeout_ms, lease_expires_at, eligible_at, rank, attempts, max_attempts, has_parents, queue, job_type,
       tenant, options ->> 'correlationId' AS correlation_id, options ->> 'traceparent' AS traceparent, checkpoint, payload, payload_apart,
       NULL::int2 AS horizon_rank, NULL::timestamptz AS horizon_at, NULL::uuid AS horizon_id, NULL::bigint AS batches, NULL::bigint AS listed
FROM taken
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       h.rank, h.eligible_at, h.first_id, f.batches, f.listed
FROM (SELECT count(*) AS batches, coalesce(sum(cardinality(ids)), 0)::bigint AS listed FROM found) AS f LEFT JOIN horizon h ON true
