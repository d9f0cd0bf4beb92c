-- Deletes finished jobs past their retention that no dropped partition covers: dead jobs, jobs in the default
-- partition of history, and jobs of an old day that other jobs keep from being dropped. $1, $2, $3 retention of
-- completed, cancelled and dead jobs in milliseconds, $4 age in milliseconds at which a day counts as old, $5 limit.
-- Relies on dead_finished and history_finished.
WITH dead AS (
    DELETE FROM orchestrix.dead WHERE id = ANY (ARRAY(
        SELECT id FROM orchestrix.dead WHERE finished_at <= now() - $3::bigint * interval '1 millisecond' ORDER BY finished_at LIMIT $5))
    RETURNING id, tenant, job_type, options, state, payload_apart
), stray AS (
    DELETE FROM orchestrix.history WHERE id = ANY (ARRAY(
        SELECT id FROM orchestrix.history
        WHERE finished_at <= now() - least($1::bigint, $2::bigint) * interval '1 millisecond'
          AND finished_at <= now() - CASE state WHEN 'completed' THEN $1::bigint ELSE $2::bigint END * interval '1 millisecond'
          AND (id < orchestrix.id_floor(now() - $4::bigint * interval '1 millisecond') OR tableoid = 'orchestrix.history_default'::regclass)
        LIMIT $5))
    RETURNING id, tenant, job_type, options, state, payload_apart
), leaving AS (
    SELECT * FROM dead UNION ALL SELECT * FROM stray
), remembered AS (
    UPDATE orchestrix.idempotency k SET last_state = l.state
    FROM leaving l WHERE k.tenant = l.tenant AND k.job_type = l.job_type AND k.key = l.options ->> 'idempotencyKey' AND k.job_id = l.id
), unpaid AS (
    DELETE FROM orchestrix.payload p USING leaving l WHERE p.id = l.id AND l.payload_apart
), unlinked AS (
    DELETE FROM orchestrix.dependency d USING leaving l WHERE d.child = l.id
)
SELECT count(*) AS pruned FROM leaving
