-- A page of matching jobs that wait for a time, a parent or a release, the newest first, out of a bounded number of
-- rows scanned. One or two last rows say where the scan ended, as in list_jobs.sql. $1 id to start before, $2 scan
-- limit, $3 states, $4 queue, $5 type, $6 tenant, $7 tag, $8 text, $9 created from, $10 created before, $11 limit,
-- $12 least id.
-- Each state is scanned by itself and the results are merged: one scan in order of ids would follow the primary key
-- through all pending jobs. Relies on job_waiting.
WITH wanted AS MATERIALIZED (
    SELECT DISTINCT state::orchestrix.job_state AS state FROM unnest($3::text[]) AS state
), horizon AS MATERIALIZED (
    SELECT j.id FROM wanted w CROSS JOIN LATERAL (
        SELECT id FROM orchestrix.job
        WHERE state IN ('created', 'blocked', 'scheduled', 'retrying') AND state = w.state AND id < $1::uuid AND id >= $12::uuid ORDER BY id DESC LIMIT $2 + 1
    ) AS j ORDER BY j.id DESC OFFSET $2 - 1 LIMIT 2
)
(SELECT j.* FROM wanted w CROSS JOIN LATERAL (
    SELECT id, state::text, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at, started_at,
           NULL::timestamptz AS finished_at, worker, cancel_requested, progress::text, NULL::text AS reason, options::text, NULL::uuid AS last
    FROM orchestrix.job
    WHERE state IN ('created', 'blocked', 'scheduled', 'retrying') AND state = w.state
      AND id < $1::uuid AND id >= coalesce((SELECT id FROM horizon ORDER BY id DESC LIMIT 1), $12::uuid)
      AND ($4::text IS NULL OR queue = $4) AND ($5::text IS NULL OR job_type = $5)
      AND ($6::text IS NULL OR tenant = $6) AND ($7::text IS NULL OR options -> 'tags' ? $7)
      AND ($8::text IS NULL OR strpos(job_type, $8) > 0 OR strpos(options ->> 'correlationId', $8) > 0 OR strpos(options ->> 'idempotencyKey', $8) > 0)
      AND ($9::timestamptz IS NULL OR created_at >= $9) AND ($10::timestamptz IS NULL OR created_at < $10)
    ORDER BY id DESC LIMIT $11
 ) AS j ORDER BY j.id DESC LIMIT $11)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, id FROM horizon
