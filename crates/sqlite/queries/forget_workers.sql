-- Deletes silent workers that are also past their own `dead_after`, longest silent first.
-- ?1 silent since, ?2 limit, ?3 now. Relies on worker_seen.
DELETE FROM worker WHERE name IN (
    SELECT name FROM worker WHERE last_seen_at <= ?1 AND last_seen_at <= ?3 - dead_after_ms * 1000
    ORDER BY last_seen_at, name LIMIT ?2)
