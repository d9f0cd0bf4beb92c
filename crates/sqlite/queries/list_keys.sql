-- A page of API keys, by id. ?1 after this id, ?2 limit.
-- Uses the primary key.
SELECT id, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at, revoked_at
FROM api_key WHERE id > ?1 ORDER BY id LIMIT ?2
