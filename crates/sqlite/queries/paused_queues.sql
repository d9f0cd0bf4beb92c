-- The queues that are paused.
SELECT name FROM queue WHERE paused ORDER BY name
