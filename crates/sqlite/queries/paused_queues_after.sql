-- A page of paused queues, by name. ?1 after this name, ?2 limit.
-- Uses the primary key.
SELECT name FROM queue WHERE paused AND name > ?1 ORDER BY name LIMIT ?2
