-- A page of operations, the newest first. $1 id to start before, $2 limit. Relies on the primary key.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at, finished_at, error, actor, tenant
FROM orchestrix.operation WHERE id < $1 ORDER BY id DESC LIMIT $2
