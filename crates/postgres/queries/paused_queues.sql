-- The queues that are paused.
SELECT name FROM orchestrix.queue WHERE paused ORDER BY name
