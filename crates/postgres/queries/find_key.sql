-- One API key with the SHA-256 of its secret, and the server's time. $1 id. Relies on the primary key.
SELECT id, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at, revoked_at, digest, now() AS now
FROM orchestrix.api_key WHERE id = $1
