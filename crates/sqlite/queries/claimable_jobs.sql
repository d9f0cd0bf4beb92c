-- Claimable jobs of one lane in claim order, after a claim key. `expired` marks jobs that never started and whose
-- expiry has passed. ?1 queue, ?2 job type, ?3 rank, ?4 eligible at, ?5 id, ?6 now, ?7 limit. Relies on job_claim.
SELECT id, rank, eligible_at, lease_ms, timeout_ms, lease_counter, attempts, max_attempts, has_parents, payload_apart,
       tenant, options, payload, expires_at IS NOT NULL AND expires_at <= ?6 AND started_at IS NULL AS expired
FROM job
WHERE state = 'pending' AND queue = ?1 AND job_type = ?2 AND (rank, eligible_at, id) > (?3, ?4, ?5)
ORDER BY rank, eligible_at, id LIMIT ?7
