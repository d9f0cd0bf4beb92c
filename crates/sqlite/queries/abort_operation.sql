-- Stops an operation that runs. ?1 id, ?2 now.
UPDATE operation SET state = 'aborted', updated_at = ?2, finished_at = ?2 WHERE id = ?1 AND state = 'running'
