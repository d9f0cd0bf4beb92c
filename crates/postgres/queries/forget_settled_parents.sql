-- Removes finished parents that no child waits for any more. $1 limit. Relies on dependency_open.
DELETE FROM orchestrix.settled
WHERE id = ANY (ARRAY(
    SELECT s.id FROM orchestrix.settled s
    WHERE NOT EXISTS (SELECT FROM orchestrix.dependency d WHERE d.parent = s.id AND NOT d.met)
    LIMIT $1 FOR UPDATE SKIP LOCKED))
