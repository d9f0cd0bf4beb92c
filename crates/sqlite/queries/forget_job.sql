-- Forgets a job. ?1 id.
DELETE FROM job WHERE id = ?1 RETURNING tenant, job_type, options, payload_apart, has_parents, lease_counter, state
