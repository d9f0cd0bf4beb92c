-- Marks a job as one that has dependents. ?1 id.
-- Uses the primary key.
UPDATE job SET has_dependents = 1 WHERE id = ?1
