-- A page of matching jobs, the newest first, out of a bounded number of rows scanned. One or two last rows say where
-- the scan ended: the last id scanned, and the next one if there is one. $1 id to start before, $2 scan limit, $3
-- states, $4 queue, $5 type, $6 tenant, $7 tag, $8 text, $9 created from, $10 created before, $11 limit, $12 tables,
-- $13 least id.
-- The end of the scan is found in the keys alone. Rows are read only up to there, and not past the limit.
-- Relies on the primary keys.
WITH horizon AS MATERIALIZED (
    SELECT id FROM orchestrix.jobs WHERE id < $1::uuid AND id >= $13::uuid AND place = ANY ($12::text[]) ORDER BY id DESC OFFSET $2 - 1 LIMIT 2
)
(SELECT id, state::text, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at, started_at, finished_at,
        worker, cancel_requested, progress::text, reason, options::text, NULL::uuid AS last
 FROM orchestrix.jobs
 WHERE id < $1::uuid AND id >= coalesce((SELECT id FROM horizon ORDER BY id DESC LIMIT 1), $13::uuid) AND place = ANY ($12::text[])
   AND ($3::text[] IS NULL OR state::text = ANY ($3)) AND ($4::text IS NULL OR queue = $4) AND ($5::text IS NULL OR job_type = $5)
   AND ($6::text IS NULL OR tenant = $6) AND ($7::text IS NULL OR options -> 'tags' ? $7)
   AND ($8::text IS NULL OR strpos(job_type, $8) > 0 OR strpos(options ->> 'correlationId', $8) > 0
        OR strpos(options ->> 'idempotencyKey', $8) > 0 OR strpos(reason, $8) > 0)
   AND ($9::timestamptz IS NULL OR created_at >= $9) AND ($10::timestamptz IS NULL OR created_at < $10)
 ORDER BY id DESC LIMIT $11)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, id FROM horizon
