-- Attempts over their time, the longest first. ?1 now, ?2 how many. Relies on job_timeout.
SELECT id FROM job WHERE timeout_at IS NOT NULL AND timeout_at <= ?1 ORDER BY timeout_at, id LIMIT ?2
