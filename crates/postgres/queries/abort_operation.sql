-- Aborts a running operation. $1 id. Relies on the primary key.
UPDATE orchestrix.operation SET state = 'aborted', updated_at = now(), finished_at = now() WHERE id = $1 AND state = 'running'
RETURNING id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at, finished_at, error, actor, tenant
