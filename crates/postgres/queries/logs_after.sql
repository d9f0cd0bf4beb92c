-- Log lines of several jobs, each after its own sequence number. $1 ids, $2 sequence numbers, $3 limit for each.
-- Relies on log_by_job.
SELECT l.seq, l.at, l.level, l.attempt, l.message, p.id, p.after
FROM unnest($1::uuid[], $2::bigint[]) AS p (id, after)
CROSS JOIN LATERAL (
    SELECT seq, at, level, attempt, message FROM orchestrix.log WHERE job_id = p.id AND seq > p.after ORDER BY seq LIMIT $3
) AS l
ORDER BY p.id, p.after, l.seq
