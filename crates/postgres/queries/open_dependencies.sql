-- Dependencies on finished parents that are not met yet. $1 limit, $2 parents (null: any).
-- Relies on dependency_open and the primary keys.
SELECT d.child, d.parent, s.failed, j.state::text, j.lease_counter, j.attempts, j.losses, j.options ->> 'onDependencyFailure' AS policy
FROM orchestrix.settled s
JOIN orchestrix.dependency d ON d.parent = s.id AND NOT d.met
LEFT JOIN orchestrix.job j ON j.id = d.child
WHERE ($2::uuid[] IS NULL OR s.id = ANY ($2)) AND NOT EXISTS (SELECT FROM orchestrix.job p WHERE p.id = s.id)
LIMIT $1
