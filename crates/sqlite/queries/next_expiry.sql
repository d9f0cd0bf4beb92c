-- When the next job expires. Relies on job_expiry.
SELECT expires_at FROM job
WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL ORDER BY expires_at LIMIT 1
