-- One job with all its columns. $1 id. Relies on the primary keys.
SELECT j.id, j.state::text, j.job_type, j.queue, j.tenant, j.rank, j.attempts, j.max_attempts, j.created_at, j.updated_at, j.eligible_at,
       j.started_at, j.finished_at, j.worker, j.cancel_requested, j.progress::text, j.reason, j.options::text, j.losses, j.expires_at,
       j.lease_expires_at, j.lease_counter, j.timeout_ms, j.lease_ms,
       CASE WHEN j.payload_apart THEN (SELECT p.body FROM orchestrix.payload p WHERE p.id = j.id) ELSE j.payload END AS payload,
       j.result, j.checkpoint, j.attempt_log::text, j.concurrency_key, j.rate_limit_key,
       CASE WHEN j.has_parents THEN ARRAY(SELECT d.parent FROM orchestrix.dependency d WHERE d.child = j.id ORDER BY d.parent) END AS parents
FROM orchestrix.jobs j WHERE j.id = $1
