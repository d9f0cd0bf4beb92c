-- Forgets operations past their retention, those first that were over first. $1 milliseconds, $2 how many. Relies on operation_finished.
DELETE FROM orchestrix.operation WHERE id = ANY (ARRAY(
    SELECT id FROM orchestrix.operation WHERE finished_at <= now() - $1::bigint * interval '1 millisecond' ORDER BY finished_at LIMIT (SELECT $2::bigint)))
RETURNING 1
