-- $1 queue, $2 limit, $3 secret. Uses job_claim.
UPDATE job SET state = 1, lease_secret = $3::uuid, lease_expires_at = now() + interval '30 s'
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM job WHERE state = 0 AND queue = $1::text
    ORDER BY rank, eligible_at, id LIMIT $2::bigint
    FOR NO KEY UPDATE SKIP LOCKED))
RETURNING id, eligible_at, lease_expires_at, rank, payload
