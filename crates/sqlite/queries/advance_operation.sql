-- Records one step of an operation, provided that it still runs and its cursor is where the step began.
-- ?1 id, ?2 cursor before the step, ?3 cursor after it, ?4 jobs matched, ?5 changed, ?6 refused, ?7 final state or
-- null, ?8 error or null, ?9 now. Uses the primary key.
UPDATE operation
SET cursor = ?3, matched = matched + ?4, changed = changed + ?5, refused = refused + ?6, updated_at = ?9,
    state = coalesce(?7, state), finished_at = CASE WHEN ?7 IS NOT NULL THEN ?9 END, error = ?8
WHERE id = ?1 AND state = 'running' AND cursor IS ?2
