-- When the next attempt times out. Relies on job_timeout.
SELECT timeout_at FROM job WHERE timeout_at IS NOT NULL ORDER BY timeout_at LIMIT 1
