-- Deletes silent nodes, longest silent first. ?1 silent since, ?2 limit. Relies on node_seen.
DELETE FROM node WHERE name IN (SELECT name FROM node WHERE last_seen_at <= ?1 ORDER BY last_seen_at, name LIMIT ?2)
