-- Pauses a queue: its jobs are not claimed. ?1 name.
-- Uses the primary key.
INSERT INTO queue (name, paused) VALUES (?1, 1) ON CONFLICT (name) DO UPDATE SET paused = 1
