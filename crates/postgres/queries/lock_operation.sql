-- Locks one operation, so that no other transaction aborts or advances it. $1 id. Relies on the primary key.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at, finished_at, error, actor, tenant
FROM orchestrix.operation WHERE id = $1 FOR UPDATE
