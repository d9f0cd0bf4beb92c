-- Takes an idempotency key for a job. ?1 tenant, ?2 job type, ?3 key, ?4 job, ?5 fingerprint.
INSERT INTO idempotency (tenant, job_type, key, job_id, fingerprint) VALUES (?1, ?2, ?3, ?4, ?5)
