-- The second part of every claim. It leases the first pending jobs of the ready batches that the first part read, and
-- skips jobs that other transactions have locked.
-- $1 queues, $2 types, $3 ranks, $4 times and $5 ids: the scans, and the batch that each starts at. $6 batches to read per
-- scan, $7 jobs wanted, $8 worker, $9 secret, $10 queues and $11 types to skip other batches by, null for none.
-- Relies on the primary key of job.
-- The first part locks batches, so that concurrent claims read the next ones instead of skipping job after job.
-- A scan that returns as many batches as it may read has more, so the order over all scans is known only up to its
-- last batch. The horizon is the first of these: jobs after it are left to the next round.
-- The start of a scan is a row comparison, so it begins there and does not walk the dead index entries before it.
-- Parameters are sub-selects where their values would change the estimates: the server then prefers one generic plan to
-- planning every claim.
-- Returns the jobs, and one row without an id: where the next round starts, if there are more batches; how many batches
-- and jobs were read, and how many jobs were locked; whether batches were skipped because another claim has locked them;
-- and paused queues whose batches were found.
found AS MATERIALIZED (
    SELECT b.*, row_number() OVER (PARTITION BY n ORDER BY rank, eligible_at, first_id) AS nth FROM batch b
), horizon AS MATERIALIZED (
    SELECT rank, eligible_at, first_id FROM found WHERE nth = $6 ORDER BY rank, eligible_at, first_id LIMIT 1
), paused AS MATERIALIZED (
    SELECT name FROM orchestrix.queue WHERE paused AND name = ANY (ARRAY(SELECT queue FROM found))
), visited AS MATERIALIZED (
    SELECT f.* FROM found f
    WHERE ((SELECT $10::text[]) IS NULL OR f.queue IN (SELECT unnest((SELECT $10::text[]))))
      AND ((SELECT $11::text[]) IS NULL OR f.job_type IN (SELECT unnest((SELECT $11::text[]))))
      AND NOT EXISTS (SELECT FROM paused p WHERE p.name = f.queue)
      AND NOT EXISTS (SELECT FROM horizon h WHERE (f.rank, f.eligible_at, f.first_id) > (h.rank, h.eligible_at, h.first_id))
), candidate AS MATERIALIZED (
    -- A job that became claimable twice at the same time is in two batches.
    SELECT DISTINCT ON (v.rank, v.eligible_at, i.id) v.place, v.rank, v.eligible_at, i.id
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
    LIMIT (SELECT $7::bigint)
), taken AS (
    -- By ctid: the rows are locked and cannot move, so no index is searched again.
    UPDATE orchestrix.job AS j
    SET state = 'running', updated_at = now(), started_at = now(), worker = $8::text, progress = NULL,
        lease_counter = j.lease_counter + 1, lease_secret = $9::uuid, lease_expires_at = now() + j.lease_ms * interval '1 millisecond',
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
), shrunk AS MATERIALIZED (
    -- Of the other batches, the jobs that this claim leaves.
    SELECT v.place, ARRAY(SELECT i.id FROM unnest(v.ids) AS i (id) WHERE i.id NOT IN (SELECT id FROM taken) ORDER BY i.id) AS ids
    FROM visited v
    WHERE v.place IN (SELECT batch FROM picked) AND v.place NOT IN (SELECT place FROM emptied)
), trimmed AS (
    UPDATE orchestrix.ready AS r SET ids = s.ids
    FROM shrunk s
    WHERE r.ctid = s.place
      AND r.ctid = ANY (ARRAY(SELECT ctid FROM orchestrix.ready WHERE ctid = ANY (ARRAY(SELECT place FROM shrunk)) FOR UPDATE SKIP LOCKED))
), counted AS (
    INSERT INTO orchestrix.depth_delta (state, queues, counts)
    SELECT s.state, array_agg(t.queue), array_agg(s.sign * t.n)
    FROM (SELECT queue, count(*) AS n FROM taken GROUP BY queue) AS t
    CROSS JOIN (VALUES ('pending'::orchestrix.job_state, -1), ('running', 1)) AS s (state, sign)
    GROUP BY s.state
)
SELECT id, lease_counter, lease_ms, timeout_ms, lease_expires_at, eligible_at, rank, attempts, max_attempts, has_parents, queue, job_type,
       tenant, options ->> 'correlationId' AS correlation_id, options ->> 'traceparent' AS traceparent, checkpoint, payload, payload_apart,
       NULL::int2 AS next_rank, NULL::timestamptz AS next_at, NULL::uuid AS next_id, NULL::bigint AS batches, NULL::bigint AS listed,
       NULL::bigint AS locked, NULL::boolean AS skipped, NULL::text[] AS paused
FROM taken
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       h.rank, h.eligible_at,
       -- A batch that begins before the horizon may list jobs after it: the next round reads it again.
       (SELECT o.first_id FROM found o WHERE o.rank = h.rank AND o.eligible_at = h.eligible_at AND o.ids[cardinality(o.ids)] >= h.first_id
        ORDER BY o.first_id LIMIT 1),
       f.batches, f.listed, (SELECT count(*) FROM picked),
       CASE WHEN h.rank IS NOT NULL THEN false ELSE (SELECT count(*) FROM visible) > f.batches END, ARRAY(SELECT name FROM paused ORDER BY name)
FROM (SELECT count(*) AS batches, coalesce(sum(cardinality(ids)), 0)::bigint AS listed FROM found) AS f LEFT JOIN horizon h ON true
