-- Deletes the edges from a job to its parents. ?1 child.
-- Uses the primary key.
DELETE FROM dependency WHERE child = ?1
