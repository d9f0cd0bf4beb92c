-- Notes that somebody waits for a job. ?1 id.
UPDATE job SET has_dependents = 1 WHERE id = ?1
