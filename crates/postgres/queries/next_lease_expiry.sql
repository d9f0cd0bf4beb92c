-- Milliseconds until the next lease expires. Relies on job_lease.
SELECT (extract(epoch FROM lease_expires_at - now()) * 1000)::float8 AS in_ms FROM orchestrix.job WHERE lease_expires_at IS NOT NULL ORDER BY lease_expires_at LIMIT 1
