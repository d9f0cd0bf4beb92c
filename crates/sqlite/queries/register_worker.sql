-- Registers or updates a worker and returns its directive. A new instance, or one without an instance id after its
-- predecessor died, starts fresh: directive `run`, all slots free. The same instance keeps its directive, its free
-- slots and its start time. A registration without an instance id changes nothing of a worker that has one.
-- ?1 name, ?2 queues, ?3 job types, ?4 concurrency, ?5 now, ?6 instance, ?7 dead after in milliseconds or null,
-- ?8 the default of ?7. Uses the primary key.
INSERT INTO worker AS w (name, queues, job_types, concurrency, free_slots, directive, started_at, last_seen_at,
    instance, dead_after_ms)
VALUES (?1, ?2, ?3, ?4, ?4, 'run', ?5, ?5, ?6, coalesce(?7, ?8))
ON CONFLICT (name) DO UPDATE SET last_seen_at = excluded.last_seen_at,
    (queues, job_types, concurrency, free_slots, directive, started_at, instance, dead_after_ms) = (
        SELECT CASE WHEN updates THEN excluded.queues ELSE w.queues END,
            CASE WHEN updates THEN excluded.job_types ELSE w.job_types END,
            CASE WHEN updates THEN excluded.concurrency ELSE w.concurrency END,
            CASE WHEN fresh THEN excluded.free_slots ELSE w.free_slots END,
            CASE WHEN fresh THEN 'run' ELSE w.directive END,
            CASE WHEN fresh THEN excluded.started_at ELSE w.started_at END,
            CASE WHEN fresh THEN ?6 ELSE w.instance END,
            CASE WHEN fresh THEN excluded.dead_after_ms
                 WHEN updates THEN coalesce(?7, w.dead_after_ms) ELSE w.dead_after_ms END
        FROM (SELECT fresh, fresh OR ?6 IS NOT NULL OR w.instance IS NULL AS updates FROM
            (SELECT CASE WHEN ?6 IS NULL THEN w.last_seen_at < ?5 - w.dead_after_ms * 1000
                         ELSE w.instance IS NOT ?6 END AS fresh)))
RETURNING directive
