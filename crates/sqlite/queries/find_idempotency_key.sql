-- The job that holds an idempotency key, and its state. ?1 tenant, ?2 job type, ?3 key.
-- Uses the primary keys.
SELECT k.job_id, k.fingerprint, coalesce((SELECT j.state FROM job j WHERE j.id = k.job_id), k.last_state) AS state
FROM idempotency k WHERE k.tenant = ?1 AND k.job_type = ?2 AND k.key = ?3
