-- The current epoch, its leader, and the milliseconds until the term ends.
SELECT epoch, node, (greatest(extract(epoch FROM CASE WHEN ends_at > now() THEN ends_at - now() ELSE '0' END), 0) * 1000)::float8 AS ends_in_ms
FROM orchestrix.leader_term
