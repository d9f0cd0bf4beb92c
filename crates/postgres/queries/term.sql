-- Whose term it is, and how many milliseconds it still runs.
SELECT epoch, node, (greatest(extract(epoch FROM CASE WHEN ends_at > now() THEN ends_at - now() ELSE '0' END), 0) * 1000)::float8
FROM orchestrix.leader_term
