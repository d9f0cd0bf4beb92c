-- Records one step of a running operation, but only if the operation is still where the step began.
-- $1 id, $2 cursor at the start of the step, $3 cursor at its end, $4 jobs matched, $5 jobs changed, $6 jobs refused,
-- $7 final state (null: still running), $8 error. Relies on the primary key.
UPDATE orchestrix.operation
SET cursor = $3, matched = matched + $4, changed = changed + $5, refused = refused + $6, updated_at = now(), state = coalesce($7, state),
    finished_at = CASE WHEN $7::text IS NOT NULL THEN now() END, error = $8
WHERE id = $1 AND state = 'running' AND cursor IS NOT DISTINCT FROM $2
RETURNING id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at, finished_at, error, actor, tenant
