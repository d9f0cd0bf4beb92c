-- The names of paused queues.
SELECT name FROM orchestrix.queue WHERE paused ORDER BY name
