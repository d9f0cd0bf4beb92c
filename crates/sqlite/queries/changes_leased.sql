-- Leased jobs, in the order in which their leases expire. ?1 and ?2 after this expiry and id, ?3 limit.
-- Relies on job_lease.
SELECT id, state, job_type, queue, tenant, updated_at, lease_expires_at FROM job
WHERE lease_expires_at >= ?1 AND (lease_expires_at > ?1 OR id > ?2) ORDER BY lease_expires_at, id LIMIT ?3
