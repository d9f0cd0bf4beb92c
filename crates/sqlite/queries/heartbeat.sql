-- Extends a lease whose token is current, even if it ran out and nobody has taken it back yet. ?1 id, ?2 counter, ?3 secret, ?4 now.
UPDATE job SET lease_expires_at = ?4 + lease_ms * 1000
WHERE id = ?1 AND lease_counter = ?2 AND lease_secret = ?3 AND state IN ('running', 'dispatched')
RETURNING lease_expires_at, cancel_requested
