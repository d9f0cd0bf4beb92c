-- Claims a job. ?1 id, ?2 token.
UPDATE queue SET state = 1, token = ?2 WHERE id = ?1 AND state = 0
