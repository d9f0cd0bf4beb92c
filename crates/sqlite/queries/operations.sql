-- A page of operations, the newest first. ?1 before which id, ?2 how many.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at, finished_at, error, actor, tenant
FROM operation WHERE id < ?1 ORDER BY id DESC LIMIT ?2
