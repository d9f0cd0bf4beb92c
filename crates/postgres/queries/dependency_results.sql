-- The results of the completed parents of jobs. $1 children. Relies on the primary keys.
SELECT d.child, d.parent, h.result
FROM orchestrix.dependency d JOIN orchestrix.history h ON h.id = d.parent
WHERE d.child = ANY ($1::uuid[]) AND h.state = 'completed' AND h.result IS NOT NULL
ORDER BY d.child, d.parent
