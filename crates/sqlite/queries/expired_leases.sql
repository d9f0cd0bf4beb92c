-- Expired leases, longest expired first. ?1 now, ?2 limit. Relies on job_lease.
SELECT id FROM job WHERE lease_expires_at IS NOT NULL AND lease_expires_at <= ?1 ORDER BY lease_expires_at, id LIMIT ?2
