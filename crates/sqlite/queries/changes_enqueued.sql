-- Recently enqueued jobs, newest first. ?1 from this id on, ?2 limit.
-- Uses the primary key.
SELECT id, state, job_type, queue, tenant, updated_at FROM job WHERE id >= ?1 ORDER BY id DESC LIMIT ?2
