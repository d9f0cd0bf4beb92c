-- Forgets whom jobs of a day waited for, once those jobs are gone. $1 day, $2 how many. Relies on the primary keys.
DELETE FROM orchestrix.dependency WHERE (child, parent) IN (
    SELECT d.child, d.parent FROM orchestrix.dependency d
    WHERE d.child >= orchestrix.id_floor($1::text::date::timestamp AT TIME ZONE 'UTC')
      AND d.child < orchestrix.id_floor(($1::text::date + 1)::timestamp AT TIME ZONE 'UTC')
      AND NOT EXISTS (SELECT FROM orchestrix.jobs j WHERE j.id = d.child)
    LIMIT $2)
RETURNING child
