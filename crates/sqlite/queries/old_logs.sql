-- The oldest log lines, with their age. ?1 how many.
SELECT seq, recorded_at FROM log ORDER BY seq LIMIT ?1
