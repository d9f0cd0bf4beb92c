-- Operations that run, the oldest first. $1 how many. Relies on operation_open.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at, finished_at, error, actor, tenant
FROM orchestrix.operation WHERE state = 'running' ORDER BY id LIMIT $1
