-- Redrives a dead or cancelled job. ?1 id, ?2 now, ?3 max attempts.
-- Uses the primary key.
UPDATE job
SET state = 'pending', updated_at = ?2, eligible_at = ?2, max_attempts = ?3, losses = 0, finished_at = NULL,
    reason = NULL, result = NULL, progress = NULL, expires_at = NULL
WHERE id = ?1 AND state IN ('dead', 'cancelled')
