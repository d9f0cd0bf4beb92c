-- Jobs after an id, in the order of ids, with whether they are finished. ?1 after this id, ?2 limit.
-- Uses the primary key.
SELECT id, finished_at IS NOT NULL AS finished FROM job WHERE id > ?1 ORDER BY id LIMIT ?2
