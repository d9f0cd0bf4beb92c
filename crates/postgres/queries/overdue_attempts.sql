-- Attempts past their timeout, oldest first. $1 how many. Relies on job_timeout.
-- Why the limit comes through a sub-select is said in promote.sql.
SELECT j.id, j.lease_counter, j.lease_secret, j.state::text, j.attempts, j.max_attempts, j.losses, j.cancel_requested, (j.options -> 'retry')::text AS retry
FROM orchestrix.job j
WHERE j.timeout_at IS NOT NULL AND j.timeout_at <= now()
ORDER BY j.timeout_at LIMIT (SELECT $1::bigint)
