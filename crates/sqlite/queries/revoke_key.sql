-- Revokes an API key. A key that is revoked already keeps its time. ?1 id, ?2 now.
-- Uses the primary key.
UPDATE api_key SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1
