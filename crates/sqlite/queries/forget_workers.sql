-- Forgets workers that have been silent, the longest first. ?1 silent since, ?2 how many. Relies on worker_seen.
DELETE FROM worker WHERE name IN (SELECT name FROM worker WHERE last_seen_at <= ?1 ORDER BY last_seen_at, name LIMIT ?2)
