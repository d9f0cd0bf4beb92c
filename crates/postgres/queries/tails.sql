-- Lines of several jobs' logs, each from behind a place of its own. $1 ids, $2 after which lines, $3 how many for each. Relies on log_by_job.
SELECT l.seq, l.at, l.level, l.attempt, l.message, p.id, p.after
FROM unnest($1::uuid[], $2::bigint[]) AS p (id, after)
CROSS JOIN LATERAL (
    SELECT seq, at, level, attempt, message FROM orchestrix.log WHERE job_id = p.id AND seq > p.after ORDER BY seq LIMIT $3
) AS l
ORDER BY p.id, p.after, l.seq
