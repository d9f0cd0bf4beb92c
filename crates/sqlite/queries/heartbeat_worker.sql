-- Shows that a worker lives, unless it counts as dead. ?1 name, ?2 free slots or null for what it last said, ?3 now, ?4 whether it drains by itself.
UPDATE worker SET last_seen_at = ?3, free_slots = coalesce(?2, free_slots),
    directive = CASE WHEN ?4 AND directive = 'run' THEN 'drain' ELSE directive END
WHERE name = ?1 AND last_seen_at >= ?3 - dead_after_ms * 1000
RETURNING directive
