-- Deletes finished operations past their retention, the oldest first. $1 milliseconds, $2 limit.
-- Relies on operation_finished.
DELETE FROM orchestrix.operation WHERE id = ANY (ARRAY(
    SELECT id FROM orchestrix.operation WHERE finished_at <= now() - $1::bigint * interval '1 millisecond' ORDER BY finished_at LIMIT (SELECT $2::bigint)))
RETURNING 1
