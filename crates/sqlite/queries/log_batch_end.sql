-- The number of the first log line behind the ?1 oldest.
-- Uses the primary key.
SELECT seq FROM log ORDER BY seq LIMIT 1 OFFSET ?1
