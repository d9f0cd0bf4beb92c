-- Creates an API key, unless its id is taken. ?1 id, ?2 digest, ?3 name, ?4 role, ?5 tenant, ?6 requests per period,
-- ?7 period in milliseconds, ?8 burst, ?9 now, ?10 expires at. Uses the primary key.
INSERT INTO api_key (id, digest, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO NOTHING
