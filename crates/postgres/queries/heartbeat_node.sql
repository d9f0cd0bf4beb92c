-- Adds a node or renews its heartbeat. $1 name, $2 address, $3 roles. Relies on the primary key.
INSERT INTO orchestrix.node AS n (name, address, roles, started_at, last_seen_at) VALUES ($1, $2, $3, now(), now())
ON CONFLICT (name) DO UPDATE SET address = excluded.address, roles = excluded.roles, last_seen_at = excluded.last_seen_at
