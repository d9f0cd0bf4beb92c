-- A page of the operations of a tenant, the newest first. $1 before which id, $2 how many, $3 tenant. Relies on operation_tenant; why
-- the limit comes through a sub-select is said in promote.sql.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at, finished_at, error, actor, tenant
FROM orchestrix.operation WHERE tenant = $3 AND id < $1 ORDER BY id DESC LIMIT (SELECT $2::bigint)
