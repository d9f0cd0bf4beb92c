-- A page of nodes. $1 name to start after, $2 limit. Relies on the primary key.
SELECT n.name, n.address, n.roles, n.started_at, n.last_seen_at,
       EXISTS (SELECT FROM orchestrix.leader_term t WHERE t.node = n.name AND t.ends_at > now()) AS leads
FROM orchestrix.node n WHERE n.name > $1 ORDER BY n.name LIMIT $2
