-- Keeps what the next attempt should get back. ?1 id, ?2 body.
INSERT INTO checkpoint (id, body) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = excluded.body
