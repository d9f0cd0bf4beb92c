-- Keeps a large payload. ?1 id, ?2 body.
INSERT INTO payload (id, body) VALUES (?1, ?2)
