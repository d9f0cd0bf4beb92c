-- Jobs that did not start in time, oldest first. $1 how many. Relies on job_expiry.
-- Why the limit comes through a sub-select is said in promote.sql.
SELECT j.id, j.lease_counter, j.lease_secret, j.state::text, j.attempts, j.max_attempts, j.losses, j.cancel_requested, (j.options -> 'retry')::text AS retry
FROM orchestrix.job j
WHERE j.expires_at IS NOT NULL AND j.started_at IS NULL AND j.expires_at <= now()
ORDER BY j.expires_at LIMIT (SELECT $1::bigint)
