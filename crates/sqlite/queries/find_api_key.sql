-- One API key and the SHA-256 of its secret. ?1 id.
SELECT id, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at, revoked_at, digest
FROM api_key WHERE id = ?1
