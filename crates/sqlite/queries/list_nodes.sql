-- A page of nodes, by name, with whether each leads. ?1 after this name, ?2 limit, ?3 now.
-- Uses the primary keys.
SELECT n.name, n.address, n.roles, n.started_at, n.last_seen_at,
       EXISTS (SELECT 1 FROM leader l WHERE l.only_one = 1 AND l.node = n.name AND l.ends_at > ?3) AS leads
FROM node n WHERE n.name > ?1 ORDER BY n.name LIMIT ?2
