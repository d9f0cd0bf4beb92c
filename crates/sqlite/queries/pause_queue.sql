-- Stops claims from a queue. ?1 name.
INSERT INTO queue (name, paused) VALUES (?1, 1) ON CONFLICT (name) DO UPDATE SET paused = 1
