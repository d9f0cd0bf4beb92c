-- Milliseconds until the next scheduled or retrying job is due. Relies on job_due.
SELECT (extract(epoch FROM eligible_at - now()) * 1000)::float8 AS in_ms FROM orchestrix.job WHERE state IN ('scheduled', 'retrying') ORDER BY eligible_at LIMIT 1
