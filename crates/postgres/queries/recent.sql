-- What happened lately: what is leased, what was recorded (by the time in its id) and what ended since then. $1 since when (null: only what
-- is leased), $2 how many of each. One statement, so that all of it is of one moment. Relies on job_lease, the primary key,
-- history_finished and dead_finished. The first row is the time.
SELECT 0 AS kind, NULL::uuid AS id, NULL::text AS state, NULL::text AS job_type, NULL::text AS queue, NULL::text AS tenant, now() AS at
UNION ALL
(SELECT 1, id, state::text, job_type, queue, tenant, updated_at FROM orchestrix.job WHERE lease_expires_at IS NOT NULL LIMIT $2)
UNION ALL
(SELECT 2, id, state::text, job_type, queue, tenant, updated_at FROM orchestrix.job WHERE id >= orchestrix.id_floor($1) ORDER BY id DESC LIMIT $2)
UNION ALL
(SELECT 3, id, state::text, job_type, queue, tenant, finished_at FROM orchestrix.history WHERE finished_at >= $1 LIMIT $2)
UNION ALL
(SELECT 4, id, state::text, job_type, queue, tenant, finished_at FROM orchestrix.dead WHERE finished_at >= $1 ORDER BY finished_at DESC LIMIT $2)
