-- Pauses or resumes a queue. $1 name, $2 paused. Relies on the primary key.
INSERT INTO orchestrix.queue (name, paused) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET paused = excluded.paused
