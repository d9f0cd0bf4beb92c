-- Takes a key back; one that was keeps its time. $1 id.
UPDATE orchestrix.api_key SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 RETURNING 1
