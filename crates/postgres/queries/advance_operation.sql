-- Records a step of an operation, only where it runs and stands where the step began. $1 id, $2 where the step began, $3 where it ended,
-- $4 how many more matched, $5 were changed, $6 were refused, $7 the state it ends in, $8 why it failed.
UPDATE orchestrix.operation
SET cursor = $3, matched = matched + $4, changed = changed + $5, refused = refused + $6, updated_at = now(), state = coalesce($7, state),
    finished_at = CASE WHEN $7::text IS NOT NULL THEN now() END, error = $8
WHERE id = $1 AND state = 'running' AND cursor IS NOT DISTINCT FROM $2
RETURNING id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at, finished_at, error, actor, tenant
