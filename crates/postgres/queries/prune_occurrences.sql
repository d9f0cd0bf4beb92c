-- Forgets lines of ledgers past their retention, the oldest first: by their last nominal time or by when they were written, whichever is
-- later, since a line that goes lets its time be filled again. $1 milliseconds, $2 how many. Relies on occurrence_kept.
DELETE FROM orchestrix.occurrence WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM orchestrix.occurrence WHERE greatest(until, at) <= now() - $1::bigint * interval '1 millisecond' ORDER BY greatest(until, at) LIMIT (SELECT $2::bigint)))
RETURNING 1
