-- Dead jobs, newest first. The caller stops reading when its page is full. ?1 before this id, ?2 from this id on.
-- Relies on job_dead.
SELECT id, state, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at,
       started_at, finished_at, worker, cancel_requested, progress, reason, options
FROM job INDEXED BY job_dead WHERE id < ?1 AND id >= ?2 AND state = 'dead' ORDER BY id DESC
