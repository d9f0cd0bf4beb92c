-- The second part of every claim. It leases the first pending jobs of the ready batches that the first part read, in the
-- order of turns, and skips jobs that other transactions have locked.
-- The visits, one for each scan, priority and tenant: $1 queues, $2 types, $3 ranks, $4 ring positions, $5 times and $6 ids
-- where each starts, $7 the number of its turn in the order of claims (visits of one priority and tenant share it), $8
-- the jobs that the tenant has had in this turn. $9 batches to read per visit, $10 jobs that a tenant of weight 1 gets in
-- a turn, $11 jobs wanted, $12 worker, $13 secret, $14 queues and $15 types to skip other batches by, null for none; $16
-- the last turn that is known if there are more, or null; $17 see claim_jobs_shared.sql.
-- Relies on the primary keys of job and tenant.
-- The first part locks batches, so that concurrent claims read the next ones instead of skipping job after job.
-- The order of a job is its priority, its round (how many full turns its tenant has before it), the turn of its tenant,
-- its time of eligibility and its id. A visit that returns as many batches as it may read has more, so its jobs are known
-- only up to its last batch: the bound of its turn. The horizon is the first place in the order that a bound hides. Jobs
-- after it are left to the next round.
-- A visit is a range of row comparisons, so it begins at its start and does not walk the dead index entries before it, and
-- no other index suits it.
-- Parameters are sub-selects where their values would change the estimates: the server then prefers one generic plan to
-- planning every claim.
-- Returns the jobs, and one row without an id: whether the horizon hides jobs; how many batches and jobs were read, and
-- how many jobs were locked; whether batches were skipped because another claim has locked them; paused queues whose
-- batches were found; visits without more jobs; and visits whose jobs are all leased so far, with where they go on.
found AS MATERIALIZED (
    SELECT b.*, row_number() OVER (PARTITION BY n ORDER BY eligible_at, first_id) AS nth FROM batch b
), bound AS MATERIALIZED (
    SELECT DISTINCT ON (turn) turn, rank, taken, eligible_at, first_id FROM found WHERE nth = $9 ORDER BY turn, eligible_at, first_id
), paused AS MATERIALIZED (
    SELECT name FROM orchestrix.queue WHERE paused AND name = ANY (ARRAY(SELECT queue FROM found))
), visited AS MATERIALIZED (
    SELECT f.* FROM found f
    WHERE ((SELECT $14::text[]) IS NULL OR f.queue IN (SELECT unnest((SELECT $14::text[]))))
      AND ((SELECT $15::text[]) IS NULL OR f.job_type IN (SELECT unnest((SELECT $15::text[]))))
      AND NOT EXISTS (SELECT FROM paused p WHERE p.name = f.queue)
), share AS MATERIALIZED (
    SELECT f.turn, (SELECT $10::bigint) * coalesce((SELECT t.weight FROM orchestrix.tenant t WHERE t.name = f.tenant), 1) AS allowance
    FROM (SELECT DISTINCT ON (turn) turn, tenant FROM visited ORDER BY turn) AS f
), candidate AS MATERIALIZED (
    -- A job that became claimable twice at the same time is in two batches.
    SELECT DISTINCT ON (v.turn, v.eligible_at, i.id) v.place AS batch, v.n, v.rank, v.turn, v.taken, v.eligible_at, i.id, j.place
    FROM visited v CROSS JOIN unnest(v.ids) AS i (id)
    CROSS JOIN LATERAL (
        SELECT j.ctid AS place FROM orchestrix.job j
        WHERE j.id = i.id AND j.state = 'pending' AND j.rank = v.rank AND j.eligible_at = v.eligible_at
          AND (j.expires_at IS NULL OR j.expires_at > now() OR j.started_at IS NOT NULL)
        -- Keeps the planner from joining whole tables.
        LIMIT 1) AS j
    WHERE NOT EXISTS (SELECT FROM bound b WHERE b.turn = v.turn AND (v.eligible_at, i.id) > (b.eligible_at, b.first_id))
    ORDER BY v.turn, v.eligible_at, i.id
), numbered AS MATERIALIZED (
    SELECT c.*, s.allowance, (least(c.taken, s.allowance) + row_number() OVER (PARTITION BY c.turn ORDER BY c.eligible_at, c.id) - 1) / s.allowance AS round
    FROM candidate c JOIN share s USING (turn)
), horizon AS MATERIALIZED (
    SELECT rank, round, turn FROM (
        SELECT b.rank, (least(b.taken, s.allowance) + (SELECT count(*) FROM candidate c WHERE c.turn = b.turn)) / coalesce(s.allowance, 1) AS round, b.turn
        FROM bound b LEFT JOIN share s USING (turn)
        UNION ALL SELECT v.rank, 0, v.turn FROM visit v WHERE v.turn = $16::int4
    ) AS h ORDER BY rank, round, turn LIMIT 1
), ordered AS MATERIALIZED (
    SELECT c.* FROM numbered c
    WHERE NOT EXISTS (SELECT FROM horizon h WHERE (c.rank, c.round, c.turn) > (h.rank, h.round, h.turn))
    ORDER BY c.rank, c.round, c.turn, c.eligible_at, c.id
), picked AS MATERIALIZED (
    SELECT c.batch, c.n, c.id, c.turn, c.round, c.allowance, j.place
    FROM ordered c
    CROSS JOIN LATERAL (
        SELECT j.ctid AS place FROM orchestrix.job j
        WHERE j.ctid = c.place AND j.id = c.id AND j.state = 'pending' AND j.rank = c.rank AND j.eligible_at = c.eligible_at
        FOR NO KEY UPDATE SKIP LOCKED) AS j
    LIMIT (SELECT $11::bigint)
), taken AS (
    -- By ctid: the rows are locked and cannot move, so no index is searched again.
    UPDATE orchestrix.job AS j
    SET state = 'running', updated_at = now(), started_at = now(), worker = $12::text, progress = NULL,
        lease_counter = j.lease_counter + 1, lease_secret = $13::uuid, lease_expires_at = now() + j.lease_ms * interval '1 millisecond',
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
), left_over AS MATERIALIZED (
    SELECT DISTINCT n FROM candidate WHERE id NOT IN (SELECT id FROM taken)
), passed AS MATERIALIZED (
    -- Where the visits of a turn that is not known to its end go on. A batch that begins before the bound may list jobs
    -- after it, and is read again.
    SELECT v.n, b.eligible_at, coalesce(
        (SELECT o.first_id FROM found o WHERE o.n = v.n AND o.eligible_at = b.eligible_at AND o.ids[cardinality(o.ids)] >= b.first_id
         ORDER BY o.first_id LIMIT 1), b.first_id) AS first_id
    FROM visit v JOIN bound b USING (turn) WHERE v.n NOT IN (SELECT n FROM left_over)
)
SELECT t.id, lease_counter, lease_ms, timeout_ms, lease_expires_at, eligible_at, rank, attempts, max_attempts, has_parents, queue, job_type,
       tenant, options ->> 'correlationId' AS correlation_id, options ->> 'traceparent' AS traceparent, checkpoint, payload, payload_apart,
       p.n AS visit, p.turn, p.round, p.allowance,
       NULL::boolean AS more, NULL::bigint AS batches, NULL::bigint AS listed, NULL::bigint AS locked, NULL::boolean AS skipped,
       NULL::text[] AS paused, NULL::int8[] AS ended, NULL::int8[] AS passed, NULL::timestamptz[] AS passed_at, NULL::uuid[] AS passed_id
FROM taken t JOIN picked p USING (id)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       EXISTS (SELECT FROM horizon), f.batches, f.listed, (SELECT count(*) FROM picked),
       CASE WHEN EXISTS (SELECT FROM bound) THEN false ELSE (SELECT count(*) FROM visible) > f.batches END,
       ARRAY(SELECT name FROM paused ORDER BY name),
       ARRAY(SELECT v.n FROM visit v WHERE v.n NOT IN (SELECT n FROM left_over) AND NOT EXISTS (SELECT FROM bound b WHERE b.turn = v.turn)),
       p.n, p.at, p.id
FROM (SELECT count(*) AS batches, coalesce(sum(cardinality(ids)), 0)::bigint AS listed FROM found) AS f
CROSS JOIN (SELECT array_agg(n) AS n, array_agg(eligible_at) AS at, array_agg(first_id) AS id FROM passed) AS p
