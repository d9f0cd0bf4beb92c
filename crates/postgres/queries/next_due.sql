-- Milliseconds until the next job is due here. Relies on job_due.
SELECT (extract(epoch FROM eligible_at - now()) * 1000)::float8 FROM orchestrix.job WHERE state IN ('scheduled', 'retrying') ORDER BY eligible_at LIMIT 1
