-- Recent changes of jobs in one snapshot. `kind` says why a row is there: 0 the server's time (the first row), 1
-- leased, 2 enqueued (by the time in the id), 3 in history, 4 dead, 5 cancelled, 6 redriven, 7 ids of unfinished
-- jobs.
-- $1 enqueued since, $2 limit of each kind, $3 finished since, $4 cancelled since, $5 lease expiry and $6 id to start
-- after (null: first), $7 limit of enqueued jobs, $8 redriven since, $9 id to start after, $10 limit of ids. A null
-- time skips that kind. A redriven job that has finished again is a row without an id, so that it counts towards the
-- limit.
-- Relies on job_lease, the primary keys of job and revived, history_finished and dead_finished.
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
