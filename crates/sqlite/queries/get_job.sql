-- One job in full, without its attempts and parents. The first columns are those of job_summary.sql. ?1 id.
-- Uses the primary keys.
SELECT id, state, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at,
       started_at, finished_at, worker, cancel_requested, progress, reason, options,
       losses, expires_at, lease_expires_at, lease_counter, timeout_ms, lease_ms,
       CASE WHEN payload_apart THEN (SELECT p.body FROM payload p WHERE p.id = job.id) ELSE payload END AS payload,
       result, (SELECT c.body FROM checkpoint c WHERE c.id = job.id) AS checkpoint, concurrency_key, rate_limit_key
FROM job WHERE id = ?1
