-- The last of the oldest log lines. ?1 how many.
SELECT seq FROM log ORDER BY seq LIMIT 1 OFFSET ?1
