-- When the next lease expires. Relies on job_lease.
SELECT lease_expires_at FROM job WHERE lease_expires_at IS NOT NULL ORDER BY lease_expires_at LIMIT 1
