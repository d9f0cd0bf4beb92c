-- Deletes notes of redriven jobs past their retention, the oldest first. $1 milliseconds, $2 limit.
-- Relies on the primary key.
DELETE FROM orchestrix.revived WHERE (at, id) IN (
    SELECT at, id FROM orchestrix.revived WHERE at <= now() - $1::bigint * interval '1 millisecond' ORDER BY at, id LIMIT (SELECT $2::bigint))
RETURNING 1
