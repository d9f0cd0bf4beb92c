-- Recently redriven jobs, latest first. The id is null where the job has finished again. ?1 since, ?2 limit.
-- Uses the primary keys.
SELECT job.id, job.state, job.job_type, job.queue, job.tenant, job.updated_at
FROM revived LEFT JOIN job ON job.id = revived.id AND job.finished_at IS NULL
WHERE revived.at >= ?1 ORDER BY revived.at DESC, revived.id DESC LIMIT ?2
