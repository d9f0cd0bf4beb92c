-- Makes a worker known. A fresh start (another instance, or none after the silence of one that is dead) runs; said again by the same worker, it
-- leaves what that was told to do, its free slots and since when it works. Whoever does not name a start says nothing of one that did.
-- ?1 name, ?2 queues, ?3 types, ?4 concurrency, ?5 now, ?6 instance, ?7 milliseconds that it may be silent, ?8 the same of one that does not say.
INSERT INTO worker AS w (name, queues, job_types, concurrency, free_slots, directive, started_at, last_seen_at, instance, dead_after_ms)
VALUES (?1, ?2, ?3, ?4, ?4, 'run', ?5, ?5, ?6, coalesce(?7, ?8))
ON CONFLICT (name) DO UPDATE SET last_seen_at = excluded.last_seen_at,
    (queues, job_types, concurrency, free_slots, directive, started_at, instance, dead_after_ms) = (
        SELECT CASE WHEN said THEN excluded.queues ELSE w.queues END,
            CASE WHEN said THEN excluded.job_types ELSE w.job_types END,
            CASE WHEN said THEN excluded.concurrency ELSE w.concurrency END,
            CASE WHEN fresh THEN excluded.free_slots ELSE w.free_slots END,
            CASE WHEN fresh THEN 'run' ELSE w.directive END,
            CASE WHEN fresh THEN excluded.started_at ELSE w.started_at END,
            CASE WHEN fresh THEN ?6 ELSE w.instance END,
            CASE WHEN fresh THEN excluded.dead_after_ms WHEN said THEN coalesce(?7, w.dead_after_ms) ELSE w.dead_after_ms END
        FROM (SELECT fresh, fresh OR ?6 IS NOT NULL OR w.instance IS NULL AS said FROM
            (SELECT CASE WHEN ?6 IS NULL THEN w.last_seen_at < ?5 - w.dead_after_ms * 1000 ELSE w.instance IS NOT ?6 END AS fresh)))
RETURNING directive
