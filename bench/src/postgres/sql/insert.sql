-- One job, one transaction. $1 payload.
INSERT INTO queue (queue, payload) VALUES ('default', $1::text::jsonb)
