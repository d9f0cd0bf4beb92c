-- Shows that a worker lives. $1 name, $2 free slots.
UPDATE orchestrix.worker SET last_seen_at = now(), free_slots = $2 WHERE name = $1 RETURNING directive
