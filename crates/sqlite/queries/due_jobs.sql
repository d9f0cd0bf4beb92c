-- Scheduled and retrying jobs that are due, longest due first. ?1 now, ?2 limit. Relies on job_due.
SELECT id FROM job WHERE state IN ('scheduled', 'retrying') AND eligible_at <= ?1 ORDER BY eligible_at, id LIMIT ?2
