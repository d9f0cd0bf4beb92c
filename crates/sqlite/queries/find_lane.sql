-- The first lane of a queue at or after a job type, and whether the queue is paused. ?1 queue, ?2 job type.
-- Uses the primary key.
SELECT job_type, paused FROM lane
WHERE queue = ?1 AND job_type >= ?2
ORDER BY job_type LIMIT 1
