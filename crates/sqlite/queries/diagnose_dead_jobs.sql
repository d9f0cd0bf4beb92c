-- Counts dead jobs, up to ?1. Relies on job_dead.
SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_dead WHERE state = 'dead' LIMIT ?1)
