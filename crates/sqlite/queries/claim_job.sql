-- Leases a claimable job. ?1 id, ?2 lease counter, ?3 secret, ?4 worker, ?5 now, ?6 lease expires at, ?7 timeout at.
-- Uses the primary key.
UPDATE job
SET state = 'running', updated_at = ?5, started_at = ?5, worker = ?4, progress = NULL, lease_counter = ?2,
    lease_secret = ?3, lease_expires_at = ?6, timeout_at = ?7
WHERE id = ?1 AND state = 'pending' AND lease_counter = ?2 - 1
