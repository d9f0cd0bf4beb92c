-- Locks a resumed queue whose ready batches may be parked. $1 queue, null for any. Relies on queue_resuming.
SELECT name FROM orchestrix.queue WHERE resuming AND ($1::text IS NULL OR name = $1) ORDER BY name LIMIT 1 FOR NO KEY UPDATE
