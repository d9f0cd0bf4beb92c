-- What was recorded lately, the newest first. ?1 from which id on, ?2 how many.
SELECT id, state, job_type, queue, tenant, updated_at FROM job WHERE id >= ?1 ORDER BY id DESC LIMIT ?2
