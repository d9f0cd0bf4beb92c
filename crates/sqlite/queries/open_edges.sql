-- Children of a job that have not been told. ?1 parent, ?2 how many. Relies on dependency_open.
SELECT child FROM dependency WHERE parent = ?1 AND met = 0 ORDER BY child LIMIT ?2
