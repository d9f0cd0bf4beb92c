-- One job. ?1 id, ?2 payload.
INSERT INTO queue (id, queue, payload) VALUES (?1, 'default', ?2)
