-- Forgets nodes that have been silent. $1 milliseconds of silence, $2 how many. Relies on node_seen.
DELETE FROM orchestrix.node WHERE name = ANY (ARRAY(
    SELECT name FROM orchestrix.node WHERE last_seen_at <= now() - $1::bigint * interval '1 millisecond'
    ORDER BY last_seen_at LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING name
