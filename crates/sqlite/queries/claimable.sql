-- Jobs of a lane in the order of claims, after a place. ?1 queue, ?2 type, ?3 rank, ?4 eligible at, ?5 id, ?6 now, ?7 how many to look
-- at. Those that should have started by now and never did are told apart. Relies on job_claim.
SELECT id, rank, eligible_at, lease_ms, timeout_ms, lease_counter, attempts, max_attempts, has_parents, payload_apart, tenant, options, payload,
       expires_at IS NOT NULL AND expires_at <= ?6 AND started_at IS NULL
FROM job
WHERE state = 'pending' AND queue = ?1 AND job_type = ?2 AND (rank, eligible_at, id) > (?3, ?4, ?5)
ORDER BY rank, eligible_at, id LIMIT ?7
