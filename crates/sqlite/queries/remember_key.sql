-- Lets a job's key remember how it ended. ?1 id, ?2 tenant, ?3 type, ?4 key, ?5 state.
UPDATE idempotency SET last_state = ?5 WHERE tenant = ?2 AND job_type = ?3 AND key = ?4 AND job_id = ?1
