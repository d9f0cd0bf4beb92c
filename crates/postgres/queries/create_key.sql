-- Makes a key known; answers with nothing if there is one of its id. $1 id, $2 digest, $3 name, $4 role, $5 tenant, $6 how many, $7 in how many
-- milliseconds, $8 at once, $9 when it ends.
INSERT INTO orchestrix.api_key (id, digest, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now(), $9) ON CONFLICT (id) DO NOTHING
RETURNING id, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at, revoked_at
