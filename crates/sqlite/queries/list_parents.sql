-- The parents of a job. ?1 child.
-- Uses the primary key.
SELECT parent FROM dependency WHERE child = ?1 ORDER BY parent
