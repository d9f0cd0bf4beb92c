-- Children of a finished job that are not resolved yet. ?1 parent, ?2 limit. Relies on dependency_open.
SELECT child FROM dependency WHERE parent = ?1 AND met = 0 ORDER BY child LIMIT ?2
