-- Adds an API key. Returns no row if the id exists. $1 id, $2 digest, $3 name, $4 role, $5 tenant, $6 requests
-- allowed, $7 per how many milliseconds, $8 burst, $9 expiry. Relies on the primary key.
INSERT INTO orchestrix.api_key (id, digest, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now(), $9) ON CONFLICT (id) DO NOTHING
RETURNING id, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at, revoked_at
