-- Jobs that were given another chance lately and are not over again, the latest first. ?1 since when, ?2 how many. The order of the tables is that of the
-- join: from the few that were, each by its id.
SELECT job.id, job.state, job.job_type, job.queue, job.tenant, job.updated_at FROM revived CROSS JOIN job ON job.id = revived.id
WHERE revived.at >= ?1 AND job.finished_at IS NULL ORDER BY revived.at DESC, revived.id DESC LIMIT ?2
