-- Jobs that were given another chance lately, the latest first, and no id where one is over again. ?1 since when, ?2 how many to look at. The order of the tables is
-- that of the join: from the few that were, each by its id.
SELECT job.id, job.state, job.job_type, job.queue, job.tenant, job.updated_at
FROM (SELECT at, id FROM revived WHERE at >= ?1 ORDER BY at DESC, id DESC LIMIT ?2) AS latest
LEFT JOIN job ON job.id = latest.id AND job.finished_at IS NULL
