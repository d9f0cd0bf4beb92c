-- Keeps the final state of a job with its idempotency key, before the job is deleted.
-- ?1 job, ?2 tenant, ?3 job type, ?4 key, ?5 state. Uses the primary key.
UPDATE idempotency SET last_state = ?5 WHERE tenant = ?2 AND job_type = ?3 AND key = ?4 AND job_id = ?1
