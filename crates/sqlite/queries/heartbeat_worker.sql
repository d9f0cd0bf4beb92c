-- Renews a worker's heartbeat and returns its directive, unless the worker counts as dead. A heartbeat of an instance
-- whose name another instance has taken changes nothing and returns `run`.
-- ?1 name, ?2 free slots (null: unchanged), ?3 now, ?4 whether the worker drains by itself, ?5 instance or null.
-- Uses the primary key.
UPDATE worker SET (last_seen_at, free_slots, directive) = (
    SELECT CASE WHEN is_own THEN ?3 ELSE last_seen_at END,
        CASE WHEN is_own THEN coalesce(?2, free_slots) ELSE free_slots END,
        CASE WHEN is_own AND ?4 AND directive = 'run' THEN 'drain' ELSE directive END
    FROM (SELECT ?5 IS NULL OR instance IS NULL OR instance = ?5 AS is_own))
WHERE name = ?1 AND last_seen_at >= ?3 - dead_after_ms * 1000
RETURNING CASE WHEN ?5 IS NULL OR instance IS NULL OR instance = ?5 THEN directive ELSE 'run' END
