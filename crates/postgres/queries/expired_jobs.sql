-- Jobs whose expiry passed before they started, the oldest first. $1 limit. Relies on job_expiry.
-- promote_jobs.sql explains why the limit is a sub-select.
SELECT j.id, j.lease_counter, j.lease_secret, j.state::text, j.attempts, j.max_attempts, j.losses, j.cancel_requested, (j.options -> 'retry')::text AS retry
FROM orchestrix.job j
WHERE j.expires_at IS NOT NULL AND j.started_at IS NULL AND j.expires_at <= now()
ORDER BY j.expires_at LIMIT (SELECT $1::bigint)
