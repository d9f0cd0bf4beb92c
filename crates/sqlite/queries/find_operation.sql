-- One operation. ?1 id.
-- Uses the primary key.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at,
       finished_at, error, actor, tenant
FROM operation WHERE id = ?1
