-- Deletes the notes about redriven jobs, oldest first. ?1 up to this time, ?2 limit.
-- Uses the primary key.
DELETE FROM revived WHERE (at, id) IN (SELECT at, id FROM revived WHERE at <= ?1 ORDER BY at, id LIMIT ?2)
