-- The results of the completed parents of a job. ?1 child.
-- Uses the primary keys.
SELECT j.id, j.result FROM dependency d JOIN job j ON j.id = d.parent
WHERE d.child = ?1 AND j.state = 'completed' AND j.result IS NOT NULL ORDER BY d.parent
