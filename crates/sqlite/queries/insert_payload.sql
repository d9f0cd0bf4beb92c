-- Stores a large payload in its own table. ?1 job, ?2 body.
INSERT INTO payload (id, body) VALUES (?1, ?2)
