-- What the jobs that one waited for left behind. ?1 child.
SELECT j.id, j.result FROM dependency d JOIN job j ON j.id = d.parent
WHERE d.child = ?1 AND j.state = 'completed' AND j.result IS NOT NULL ORDER BY d.parent
