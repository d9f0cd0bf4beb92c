-- A page of a job's log. ?1 job, ?2 after this number, ?3 limit. Relies on log_by_job.
SELECT seq, at, level, attempt, message FROM log WHERE job_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3
