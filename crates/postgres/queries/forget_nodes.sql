-- Removes nodes that sent no heartbeat. $1 milliseconds of silence, $2 limit. Relies on node_seen.
DELETE FROM orchestrix.node WHERE name = ANY (ARRAY(
    SELECT name FROM orchestrix.node WHERE last_seen_at <= now() - $1::bigint * interval '1 millisecond'
    ORDER BY last_seen_at LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING name
