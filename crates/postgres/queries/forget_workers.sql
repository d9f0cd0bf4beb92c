-- Removes workers that sent no heartbeat, neither for $1 milliseconds nor for their own `dead_after_ms`. $2 limit.
-- Relies on worker_seen.
DELETE FROM orchestrix.worker WHERE name = ANY (ARRAY(
    SELECT name FROM orchestrix.worker
    WHERE last_seen_at <= now() - $1::bigint * interval '1 millisecond'
        AND last_seen_at <= now() - dead_after_ms * interval '1 millisecond'
    ORDER BY last_seen_at LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING name
