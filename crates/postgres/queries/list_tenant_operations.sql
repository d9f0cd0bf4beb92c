-- A page of one tenant's operations, the newest first. $1 id to start before, $2 limit, $3 tenant.
-- Relies on operation_tenant. promote_jobs.sql explains why the limit is a sub-select.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at, finished_at, error, actor, tenant
FROM orchestrix.operation WHERE tenant = $3 AND id < $1 ORDER BY id DESC LIMIT (SELECT $2::bigint)
