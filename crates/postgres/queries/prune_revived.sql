-- Forgets that jobs were given another chance, the oldest first. $1 milliseconds, $2 how many. Relies on the primary key.
DELETE FROM orchestrix.revived WHERE (at, id) IN (
    SELECT at, id FROM orchestrix.revived WHERE at <= now() - $1::bigint * interval '1 millisecond' ORDER BY at, id LIMIT (SELECT $2::bigint))
RETURNING 1
