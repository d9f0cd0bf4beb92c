-- Shows that a worker lives, unless it counts as dead. $1 name, $2 free slots or null for what it last said, $3 whether it drains by itself.
UPDATE orchestrix.worker SET last_seen_at = now(), free_slots = coalesce($2, free_slots),
    directive = CASE WHEN $3 AND directive = 'run' THEN 'drain' ELSE directive END
WHERE name = $1 AND last_seen_at >= now() - dead_after_ms * interval '1 millisecond'
RETURNING directive
