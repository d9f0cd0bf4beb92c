-- Milliseconds until the next job is due here. Relies on job_timeout.
SELECT (extract(epoch FROM timeout_at - now()) * 1000)::float8 FROM orchestrix.job WHERE timeout_at IS NOT NULL ORDER BY timeout_at LIMIT 1
