-- Jobs that recently finished in one state, latest first. ?1 state, ?2 finished since, ?3 limit.
-- Relies on job_finished.
SELECT id, state, job_type, queue, tenant, updated_at FROM job
WHERE state = ?1 AND finished_at >= ?2 ORDER BY finished_at DESC LIMIT ?3
