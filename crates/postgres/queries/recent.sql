-- What happened lately: what is leased, what was recorded (by the time in its id), what ended, what was cancelled, and what was given another chance and is not
-- over again; and ids of unfinished jobs. $1 since when recorded, $2 how many of each, $3 since when ended, $4 since when cancelled (null: nothing of the kind), $5 and $6
-- behind which lease and id (null: from the first on), $7 how many that were recorded, $8 since when revived, $9 behind which id, $10 how many of those (null:
-- nothing of the kind). One statement, so that all of it is of one moment. Relies on job_lease, the primary keys of job and revived, history_finished and dead_finished.
-- The first row is the time. What was revived and is over again is a row without an id: so many are looked at, and no more.
SELECT 0 AS kind, NULL::uuid AS id, NULL::text AS state, NULL::text AS job_type, NULL::text AS queue, NULL::text AS tenant, now() AS at,
       NULL::timestamptz AS lease
UNION ALL
(SELECT 1, id, state::text, job_type, queue, tenant, updated_at, lease_expires_at FROM orchestrix.job
 WHERE lease_expires_at IS NOT NULL AND (lease_expires_at, id) > (coalesce($5, '-infinity'), coalesce($6, '00000000-0000-0000-0000-000000000000'))
 ORDER BY lease_expires_at, id LIMIT $2)
UNION ALL
(SELECT 2, id, state::text, job_type, queue, tenant, updated_at, NULL FROM orchestrix.job WHERE id >= orchestrix.id_floor($1) ORDER BY id DESC LIMIT $7)
UNION ALL
(SELECT 3, id, state::text, job_type, queue, tenant, finished_at, NULL FROM orchestrix.history WHERE finished_at >= $3 LIMIT $2)
UNION ALL
(SELECT 4, id, state::text, job_type, queue, tenant, finished_at, NULL FROM orchestrix.dead WHERE finished_at >= $3 ORDER BY finished_at DESC LIMIT $2)
UNION ALL
(SELECT 5, id, state::text, job_type, queue, tenant, finished_at, NULL FROM orchestrix.history
 WHERE finished_at >= $4 AND state = 'cancelled' LIMIT $2)
UNION ALL
(SELECT 6, j.id, j.state::text, j.job_type, j.queue, j.tenant, j.updated_at, NULL
 FROM (SELECT id FROM orchestrix.revived WHERE at >= $8 ORDER BY at DESC, id DESC LIMIT $2) r LEFT JOIN orchestrix.job j ON j.id = r.id)
UNION ALL
(SELECT 7, id, NULL, NULL, NULL, NULL, NULL, NULL FROM orchestrix.job WHERE id > $9 ORDER BY id LIMIT $10)
