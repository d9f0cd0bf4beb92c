-- Deletes the dependencies of a day's jobs before the day is dropped. $1 day, $2 limit. Relies on the primary keys.
DELETE FROM orchestrix.dependency WHERE ctid = ANY (ARRAY(
    SELECT d.ctid FROM orchestrix.dependency d
    WHERE d.child >= orchestrix.id_floor($1::text::date::timestamp AT TIME ZONE 'UTC')
      AND d.child < orchestrix.id_floor(($1::text::date + 1)::timestamp AT TIME ZONE 'UTC')
      AND EXISTS (SELECT FROM orchestrix.history h WHERE h.id = d.child)
    LIMIT $2))
RETURNING child
