-- Claimable jobs of one lane in claim order, after a claim key. `expired` marks jobs that never started and whose
-- expiry has passed. ?1 queue, ?2 job type, ?3 tenant, ?4 rank, ?5 eligible at, ?6 id, ?7 now, ?8 limit.
-- Relies on job_claim.
SELECT id, eligible_at, lease_ms, timeout_ms, lease_counter, attempts, max_attempts, has_parents, payload_apart,
       options, payload, expires_at IS NOT NULL AND expires_at <= ?7 AND started_at IS NULL AS expired
FROM job
WHERE state = 'pending' AND queue = ?1 AND job_type = ?2 AND tenant = ?3 AND rank = ?4
    AND (eligible_at, id) > (?5, ?6)
ORDER BY eligible_at, id LIMIT ?8
