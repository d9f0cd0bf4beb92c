-- A page of a job's log. $1 id, $2 sequence number to start after, $3 limit. Relies on log_by_job.
SELECT seq, at, level, attempt, message FROM orchestrix.log WHERE job_id = $1 AND seq > $2 ORDER BY seq LIMIT $3
