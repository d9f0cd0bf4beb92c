-- Queues that are paused, by name. ?1 after which name, ?2 how many.
SELECT name FROM queue WHERE paused AND name > ?1 ORDER BY name LIMIT ?2
