-- Revokes an API key; a revoked one keeps its time. $1 id. Relies on the primary key.
UPDATE orchestrix.api_key SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 RETURNING 1
