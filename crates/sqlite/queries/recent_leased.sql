-- What is leased. ?1 how many. Relies on job_lease.
SELECT id, state, job_type, queue, tenant, updated_at FROM job WHERE lease_expires_at > 0 LIMIT ?1
