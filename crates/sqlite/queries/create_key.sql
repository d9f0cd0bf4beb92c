-- Makes an API key known, unless there is one of its id. ?1 id, ?2 digest, ?3 name, ?4 role, ?5 tenant, ?6 how many, ?7 in how many milliseconds,
-- ?8 at once, ?9 now, ?10 when it ends.
INSERT INTO api_key (id, digest, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO NOTHING
