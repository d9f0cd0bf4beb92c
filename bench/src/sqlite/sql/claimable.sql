-- The next jobs with their payloads. ?1 limit. Uses queue_claim.
SELECT id, payload FROM queue WHERE state = 0 AND queue = 'default' ORDER BY id LIMIT ?1
