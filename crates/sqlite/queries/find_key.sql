-- One API key and the SHA-256 digest of its secret. ?1 id.
-- Uses the primary key.
SELECT id, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at, revoked_at, digest
FROM api_key WHERE id = ?1
