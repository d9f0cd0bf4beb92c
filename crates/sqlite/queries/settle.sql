-- Carries out what was decided about a job, if it is as it was when the decision was made: its lease counter, its secret
-- and its state. ?1 id, ?2 counter, ?3 secret, ?4 state it was in, ?5 state it goes to, ?6 now, ?7 eligible at,
-- ?8 attempts, ?9 losses, ?10 finished at, ?11 reason, ?12 result.
UPDATE job
SET state = ?5, updated_at = ?6, eligible_at = ?7, attempts = ?8, losses = ?9, finished_at = ?10, reason = ?11, result = ?12,
    waits_for = 0, lease_expires_at = NULL, timeout_at = NULL, cancel_requested = 0
WHERE id = ?1 AND lease_counter = ?2 AND lease_secret IS ?3 AND state = ?4
