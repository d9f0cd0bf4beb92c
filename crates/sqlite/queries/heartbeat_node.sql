-- Registers a node or renews its heartbeat. ?1 name, ?2 address, ?3 roles, ?4 now.
-- Uses the primary key.
INSERT INTO node (name, address, roles, started_at, last_seen_at) VALUES (?1, ?2, ?3, ?4, ?4)
ON CONFLICT (name) DO UPDATE
SET address = excluded.address, roles = excluded.roles, last_seen_at = excluded.last_seen_at
