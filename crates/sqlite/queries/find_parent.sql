-- The state and the tenant of a job that new jobs depend on. ?1 id.
-- Uses the primary key.
SELECT state, tenant FROM job WHERE id = ?1
