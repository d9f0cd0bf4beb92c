-- Extends a lease whose token is current. An expired lease that was not reaped yet is extended too.
-- ?1 job, ?2 lease counter, ?3 secret, ?4 now. Uses the primary key.
UPDATE job SET lease_expires_at = ?4 + lease_ms * 1000
WHERE id = ?1 AND lease_counter = ?2 AND lease_secret = ?3 AND state IN ('running', 'dispatched')
RETURNING lease_expires_at, cancel_requested
