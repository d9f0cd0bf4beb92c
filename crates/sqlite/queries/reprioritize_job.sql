-- Changes the priority of an unfinished job. ?1 id, ?2 rank.
-- Uses the primary key.
UPDATE job SET rank = ?2 WHERE id = ?1 AND finished_at IS NULL
