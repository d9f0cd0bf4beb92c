-- Registers or updates a worker and returns its directive. $1 name, $2 queues, $3 types, $4 concurrency, $5 instance,
-- $6 milliseconds of silence after which it counts as dead, $7 the default of $6. Relies on the primary key.
-- A fresh start (another instance, or no instance after a dead worker) resets the directive to `run`. A repeat by the
-- same instance keeps the directive, free slots and start time. A call without an instance does not change a worker
-- that named one.
INSERT INTO orchestrix.worker AS w
    (name, queues, job_types, concurrency, free_slots, directive, started_at, last_seen_at, instance, dead_after_ms)
VALUES ($1, $2, $3, $4, $4, 'run', now(), now(), $5, coalesce($6, $7))
ON CONFLICT (name) DO UPDATE SET last_seen_at = excluded.last_seen_at,
    -- One sub-select, so that `fresh` is computed once; it reads the locked row.
    (queues, job_types, concurrency, free_slots, directive, started_at, instance, dead_after_ms) = (
        SELECT CASE WHEN own THEN excluded.queues ELSE w.queues END,
            CASE WHEN own THEN excluded.job_types ELSE w.job_types END,
            CASE WHEN own THEN excluded.concurrency ELSE w.concurrency END,
            CASE WHEN fresh THEN excluded.free_slots ELSE w.free_slots END,
            CASE WHEN fresh THEN 'run' ELSE w.directive END,
            CASE WHEN fresh THEN excluded.started_at ELSE w.started_at END,
            CASE WHEN fresh THEN $5 ELSE w.instance END,
            CASE WHEN fresh THEN excluded.dead_after_ms WHEN own THEN coalesce($6, w.dead_after_ms) ELSE w.dead_after_ms END
        FROM (SELECT CASE WHEN $5 IS NULL THEN w.last_seen_at < now() - w.dead_after_ms * interval '1 millisecond'
            ELSE w.instance IS DISTINCT FROM $5 END AS fresh) AS start
        CROSS JOIN LATERAL (SELECT fresh OR $5 IS NOT NULL OR w.instance IS NULL AS own) AS caller)
RETURNING w.directive
