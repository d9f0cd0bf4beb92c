-- Marks a dependency as met: the child was resolved. ?1 child, ?2 parent.
-- Uses the primary key.
UPDATE dependency SET met = 1 WHERE child = ?1 AND parent = ?2 AND met = 0
