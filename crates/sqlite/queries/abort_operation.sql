-- Aborts a running operation. ?1 id, ?2 now.
-- Uses the primary key.
UPDATE operation SET state = 'aborted', updated_at = ?2, finished_at = ?2 WHERE id = ?1 AND state = 'running'
