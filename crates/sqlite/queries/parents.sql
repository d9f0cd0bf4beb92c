-- The jobs that one waits or waited for. ?1 child.
SELECT parent FROM dependency WHERE child = ?1 ORDER BY parent
