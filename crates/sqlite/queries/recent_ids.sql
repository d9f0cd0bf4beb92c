-- Jobs behind an id, in the order of their ids, and whether they are over. ?1 the id, ?2 how many.
SELECT id, finished_at IS NOT NULL FROM job WHERE id > ?1 ORDER BY id LIMIT ?2
