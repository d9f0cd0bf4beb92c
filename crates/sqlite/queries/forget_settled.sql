-- All dependents of a job have been told, or it has not finished after all. ?1 id.
DELETE FROM settled WHERE id = ?1
