-- A page of a tenant's operations, newest first. ?1 before this id, ?2 limit, ?3 tenant. Relies on operation_tenant.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at,
       finished_at, error, actor, tenant
FROM operation WHERE tenant = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2
