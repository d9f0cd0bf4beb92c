-- Stops or allows claims from a queue. $1 name, $2 whether to stop them.
INSERT INTO orchestrix.queue (name, paused) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET paused = excluded.paused
