-- Stores the checkpoint for the next attempt. ?1 job, ?2 body.
-- Uses the primary key.
INSERT INTO checkpoint (id, body) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = excluded.body
