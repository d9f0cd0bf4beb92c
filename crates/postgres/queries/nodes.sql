-- A page of nodes. $1 after which name, $2 how many.
SELECT n.name, n.address, n.roles, n.started_at, n.last_seen_at,
       EXISTS (SELECT FROM orchestrix.leader_term t WHERE t.node = n.name AND t.ends_at > now())
FROM orchestrix.node n WHERE n.name > $1 ORDER BY n.name LIMIT $2
