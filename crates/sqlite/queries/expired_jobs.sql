-- Jobs whose expiry passed before they started, oldest expiry first. ?1 now, ?2 limit. Relies on job_expiry.
SELECT id FROM job
WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL AND expires_at <= ?1
ORDER BY expires_at, id LIMIT ?2
