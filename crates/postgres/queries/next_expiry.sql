-- Milliseconds until the next job expires. Relies on job_expiry.
SELECT (extract(epoch FROM expires_at - now()) * 1000)::float8 AS in_ms FROM orchestrix.job WHERE expires_at IS NOT NULL AND started_at IS NULL ORDER BY expires_at LIMIT 1
