-- Jobs that were given another chance lately, the latest first, and no id where one is over again. ?1 since when, ?2 how many to look at.
SELECT job.id, job.state, job.job_type, job.queue, job.tenant, job.updated_at
FROM revived LEFT JOIN job ON job.id = revived.id AND job.finished_at IS NULL
WHERE revived.at >= ?1 ORDER BY revived.at DESC, revived.id DESC LIMIT ?2
