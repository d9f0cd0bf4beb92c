-- Adds to the number of jobs that a queue has in a state. ?1 queue, ?2 state, ?3 change.
-- Uses the primary key.
INSERT INTO depth (queue, state, n) VALUES (?1, ?2, ?3) ON CONFLICT (queue, state) DO UPDATE SET n = n + excluded.n
