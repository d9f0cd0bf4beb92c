-- A page of operations, newest first. ?1 before this id, ?2 limit.
-- Uses the primary key.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at,
       finished_at, error, actor, tenant
FROM operation WHERE id < ?1 ORDER BY id DESC LIMIT ?2
