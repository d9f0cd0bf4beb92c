-- Pauses or resumes a queue. $1 name, $2 paused. Relies on the primary key.
-- A resumed queue may have parked ready batches, which unpark_batches.sql returns.
INSERT INTO orchestrix.queue (name, paused, resuming) VALUES ($1, $2, NOT $2)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, resuming = excluded.resuming
