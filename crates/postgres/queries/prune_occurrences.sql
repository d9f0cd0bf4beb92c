-- Forgets lines of ledgers past their retention, the oldest first. $1 milliseconds, $2 how many. Relies on occurrence_until.
DELETE FROM orchestrix.occurrence WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM orchestrix.occurrence WHERE until <= now() - $1::bigint * interval '1 millisecond' ORDER BY until LIMIT (SELECT $2::bigint)))
RETURNING 1
