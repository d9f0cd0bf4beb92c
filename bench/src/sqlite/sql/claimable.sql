-- The jobs that are next, as they are shipped. ?1 how many. Relies on queue_claim.
SELECT id, payload FROM queue WHERE state = 0 AND queue = 'default' ORDER BY id LIMIT ?1
