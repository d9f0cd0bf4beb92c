-- A page of nodes. ?1 after which name, ?2 how many, ?3 now.
SELECT n.name, n.address, n.roles, n.started_at, n.last_seen_at, EXISTS (SELECT 1 FROM leader l WHERE l.only_one = 1 AND l.node = n.name AND l.ends_at > ?3)
FROM node n WHERE n.name > ?1 ORDER BY n.name LIMIT ?2
