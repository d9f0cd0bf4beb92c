-- A page of API keys. $1 id to start after, $2 limit. Relies on the primary key.
SELECT id, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at, revoked_at
FROM orchestrix.api_key WHERE id > $1 ORDER BY id LIMIT $2
