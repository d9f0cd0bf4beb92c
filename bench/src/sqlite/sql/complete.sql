-- Completes a job whose token is current. ?1 id, ?2 token, ?3 now.
UPDATE queue SET state = 2, finished_at = ?3 WHERE id = ?1 AND token = ?2 AND state = 1
