-- One operation. $1 id. Relies on the primary key.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at, finished_at, error, actor, tenant
FROM orchestrix.operation WHERE id = $1
