-- When the next scheduled or retrying job is due. Relies on job_due.
SELECT eligible_at FROM job WHERE state IN ('scheduled', 'retrying') ORDER BY eligible_at LIMIT 1
