-- Running operations, the one that waited longest for its next step first. ?1 limit. Relies on operation_turn.
SELECT id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at,
       finished_at, error, actor, tenant
FROM operation WHERE state = 'running' ORDER BY updated_at, id LIMIT ?1
