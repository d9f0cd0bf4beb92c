-- Changes how many jobs a queue has in a state. ?1 queue, ?2 state, ?3 change.
INSERT INTO depth (queue, state, n) VALUES (?1, ?2, ?3) ON CONFLICT (queue, state) DO UPDATE SET n = n + excluded.n
