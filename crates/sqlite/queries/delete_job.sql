-- Deletes a job. ?1 id.
-- Uses the primary key.
DELETE FROM job WHERE id = ?1
RETURNING queue, tenant, job_type, rank, options, payload_apart, has_parents, lease_counter, state
