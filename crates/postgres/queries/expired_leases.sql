-- Leases that expired, the oldest first. $1 limit. Relies on job_lease.
-- promote_jobs.sql explains why the limit is a sub-select.
SELECT j.id, j.lease_counter, j.lease_secret, j.state::text, j.attempts, j.max_attempts, j.losses, j.cancel_requested, (j.options -> 'retry')::text AS retry
FROM orchestrix.job j
WHERE j.lease_expires_at IS NOT NULL AND j.lease_expires_at <= now()
ORDER BY j.lease_expires_at LIMIT (SELECT $1::bigint)
