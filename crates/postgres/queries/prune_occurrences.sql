-- Deletes occurrences past their retention, the oldest first. The age counts from the last nominal time or from the
-- write, whichever is later, since a deleted occurrence can be backfilled again. $1 milliseconds, $2 limit.
-- Relies on occurrence_kept.
DELETE FROM orchestrix.occurrence WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM orchestrix.occurrence WHERE greatest(until, at) <= now() - $1::bigint * interval '1 millisecond' ORDER BY greatest(until, at) LIMIT (SELECT $2::bigint)))
RETURNING 1
