-- Forgets workers that have been silent. $1 milliseconds of silence, $2 how many. Relies on worker_seen.
DELETE FROM orchestrix.worker WHERE name = ANY (ARRAY(
    SELECT name FROM orchestrix.worker WHERE last_seen_at <= now() - $1::bigint * interval '1 millisecond'
    ORDER BY last_seen_at LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING name
