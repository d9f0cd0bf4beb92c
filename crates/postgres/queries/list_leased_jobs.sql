-- A page of matching leased jobs, the newest first. $1 id to start before, $2 states, $3 queue, $4 type, $5 tenant,
-- $6 tag, $7 text, $8 created from, $9 created before, $10 limit, $11 least id. Relies on job_lease.
-- There are as many leased jobs as workers have slots, mostly at the old end of a backlog, where list_jobs.sql would
-- reach them last. The CTE keeps the planner from searching for them along the primary key.
WITH leased AS MATERIALIZED (
    SELECT id, state, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at, started_at, worker,
           cancel_requested, progress, options
    FROM orchestrix.job WHERE lease_expires_at IS NOT NULL
)
SELECT id, state::text, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at, started_at,
       NULL::timestamptz AS finished_at, worker, cancel_requested, progress::text, NULL::text AS reason, options::text, NULL::uuid AS last
FROM leased
WHERE id < $1::uuid AND id >= $11::uuid AND state::text = ANY ($2::text[]) AND ($3::text IS NULL OR queue = $3) AND ($4::text IS NULL OR job_type = $4)
  AND ($5::text IS NULL OR tenant = $5) AND ($6::text IS NULL OR options -> 'tags' ? $6)
  AND ($7::text IS NULL OR strpos(job_type, $7) > 0 OR strpos(options ->> 'correlationId', $7) > 0 OR strpos(options ->> 'idempotencyKey', $7) > 0)
  AND ($8::timestamptz IS NULL OR created_at >= $8) AND ($9::timestamptz IS NULL OR created_at < $9)
ORDER BY id DESC LIMIT $10
