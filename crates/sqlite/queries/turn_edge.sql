-- A child has been told. ?1 child, ?2 parent.
UPDATE dependency SET met = 1 WHERE child = ?1 AND parent = ?2 AND met = 0
