-- Milliseconds until the next attempt times out. Relies on job_timeout.
SELECT (extract(epoch FROM timeout_at - now()) * 1000)::float8 AS in_ms FROM orchestrix.job WHERE timeout_at IS NOT NULL ORDER BY timeout_at LIMIT 1
