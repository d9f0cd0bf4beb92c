-- Changes how urgent an unfinished job is. ?1 id, ?2 rank.
UPDATE job SET rank = ?2 WHERE id = ?1 AND finished_at IS NULL
