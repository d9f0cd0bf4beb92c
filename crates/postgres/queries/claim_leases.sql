-- The last part of a claim: leases the jobs that were picked, and removes them from their batches. claim_jobs.sql explains
-- the parameters and the result.
taken AS (
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
    WHERE v.place NOT IN (SELECT batch FROM left_over) AND (l.jobs = cardinality(v.ids)
       OR NOT EXISTS (
            SELECT FROM orchestrix.job j
            WHERE j.id = ANY (v.ids) AND j.state = 'pending' AND j.rank = v.rank AND j.eligible_at = v.eligible_at
              AND j.id NOT IN (SELECT id FROM taken)))
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
), passed AS MATERIALIZED (
    -- Where the visits of a turn that is not known to its end go on. A batch that begins before the bound may list jobs
    -- after it, and is read again.
    SELECT n, eligible_at, CASE WHEN is_split THEN first_id ELSE bound_id END AS first_id
    FROM (
        SELECT DISTINCT ON (n) n, bound_at AS eligible_at, bound_id, first_id, is_split
        FROM (SELECT f.*, f.eligible_at = f.bound_at AND f.ids[cardinality(f.ids)] >= f.bound_id AS is_split FROM found f WHERE f.is_bounded) AS f
        ORDER BY n, is_split DESC, first_id) AS v
    WHERE n NOT IN (SELECT n FROM left_over)
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
       CASE WHEN EXISTS (SELECT FROM found WHERE is_bounded) THEN false ELSE (SELECT count(*) FROM visible) > f.batches END,
       ARRAY(SELECT name FROM paused ORDER BY name),
       ARRAY(SELECT n FROM visit WHERE n NOT IN (SELECT n FROM left_over) AND n NOT IN (SELECT n FROM found WHERE is_bounded)),
       p.n, p.at, p.id
FROM (SELECT count(*) AS batches, coalesce(sum(cardinality(ids)), 0)::bigint AS listed FROM found) AS f
CROSS JOIN (SELECT array_agg(n) AS n, array_agg(eligible_at) AS at, array_agg(first_id) AS id FROM passed) AS p
