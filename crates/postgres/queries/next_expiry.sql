-- Milliseconds until the next job is due here. Relies on job_expiry.
SELECT (extract(epoch FROM expires_at - now()) * 1000)::float8 FROM orchestrix.job WHERE expires_at IS NOT NULL AND started_at IS NULL ORDER BY expires_at LIMIT 1
