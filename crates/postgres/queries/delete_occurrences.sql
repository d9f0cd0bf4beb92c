-- Deletes occurrences of a schedule, in batches. $1 schedule, $2 limit. Relies on the primary key.
DELETE FROM orchestrix.occurrence WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM orchestrix.occurrence WHERE schedule = $1 LIMIT $2))
RETURNING 1
