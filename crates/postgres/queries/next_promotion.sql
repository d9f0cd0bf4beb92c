-- Milliseconds until the next scheduled or retrying job is due; 0 if a resumed queue has parked ready batches. Relies
-- on job_due and queue_resuming.
SELECT CASE WHEN EXISTS (SELECT FROM orchestrix.queue WHERE resuming) THEN 0
            ELSE (SELECT (extract(epoch FROM eligible_at - now()) * 1000)::float8 FROM orchestrix.job WHERE state IN ('scheduled', 'retrying')
                  ORDER BY eligible_at LIMIT 1) END AS in_ms
