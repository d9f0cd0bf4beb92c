-- The first lane of a queue at or after a job type, unless the queue is paused. ?1 queue, ?2 job type.
-- Uses the primary key.
SELECT rank, eligible_at, id, queue, job_type FROM lane
WHERE queue = ?1 AND job_type >= ?2 AND NOT paused
ORDER BY job_type LIMIT 1
