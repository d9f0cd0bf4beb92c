-- Inserts a job. ?1 id, ?2 state, ?3 queue, ?4 job type, ?5 tenant, ?6 rank, ?7 max attempts, ?8 lease, ?9 timeout,
-- ?10 now, ?11 eligible at, ?12 expires at, ?13 unfinished parents, ?14 has parents, ?15 has dependents,
-- ?16 payload in its own table, ?17 concurrency key, ?18 rate limit key, ?19 options, ?20 payload.
INSERT INTO job (id, state, queue, job_type, tenant, rank, max_attempts, lease_ms, timeout_ms, created_at, updated_at,
    eligible_at, expires_at, waits_for, has_parents, has_dependents, payload_apart, concurrency_key,
    rate_limit_key, options, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
