-- Forgets workers that have been silent, and as long as they may be by their own word. $1 milliseconds of silence, $2 how many. Relies on
-- worker_seen.
DELETE FROM orchestrix.worker WHERE name = ANY (ARRAY(
    SELECT name FROM orchestrix.worker
    WHERE last_seen_at <= now() - $1::bigint * interval '1 millisecond'
        AND last_seen_at <= now() - dead_after_ms * interval '1 millisecond'
    ORDER BY last_seen_at LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING name
