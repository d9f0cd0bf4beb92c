-- Writes a decided transition, provided that the job's lease counter, secret and state are those of the decision.
-- ?1 id, ?2 lease counter, ?3 secret, ?4 state before, ?5 state after, ?6 now, ?7 eligible at, ?8 attempts, ?9 losses,
-- ?10 finished at, ?11 reason, ?12 result. Uses the primary key.
UPDATE job
SET state = ?5, updated_at = ?6, eligible_at = ?7, attempts = ?8, losses = ?9, finished_at = ?10, reason = ?11,
    result = ?12, waits_for = 0, lease_expires_at = NULL, timeout_at = NULL, cancel_requested = 0
WHERE id = ?1 AND lease_counter = ?2 AND lease_secret IS ?3 AND state = ?4
