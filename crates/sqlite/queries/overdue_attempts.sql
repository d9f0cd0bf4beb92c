-- Attempts past their timeout, longest overdue first. ?1 now, ?2 limit. Relies on job_timeout.
SELECT id FROM job WHERE timeout_at IS NOT NULL AND timeout_at <= ?1 ORDER BY timeout_at, id LIMIT ?2
