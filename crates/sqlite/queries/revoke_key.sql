-- Takes a key back; one that was keeps its time. ?1 id, ?2 now.
UPDATE api_key SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1
