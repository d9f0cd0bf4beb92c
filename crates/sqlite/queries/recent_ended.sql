-- What ended lately in one way, the latest first. ?1 the state, ?2 since when, ?3 how many. Relies on job_finished.
SELECT id, state, job_type, queue, tenant, updated_at FROM job WHERE state = ?1 AND finished_at >= ?2 ORDER BY finished_at DESC LIMIT ?3
