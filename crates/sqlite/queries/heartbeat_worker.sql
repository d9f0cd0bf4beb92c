-- Shows that a worker lives. ?1 name, ?2 free slots, ?3 now.
UPDATE worker SET last_seen_at = ?3, free_slots = ?2 WHERE name = ?1 RETURNING directive
