-- All paused queues.
-- Uses the primary key.
SELECT name FROM queue WHERE paused ORDER BY name
