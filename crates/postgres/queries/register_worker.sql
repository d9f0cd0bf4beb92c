-- Makes a worker known. A fresh start (another instance, or none after the silence of one that is dead) runs; said again by the same worker, it
-- leaves what that was told to do, its free slots and since when it works. Whoever does not name a start says nothing of one that did.
-- $1 name, $2 queues, $3 types, $4 concurrency, $5 instance, $6 milliseconds that it may be silent, $7 the same of one that does not say.
INSERT INTO orchestrix.worker AS w
    (name, queues, job_types, concurrency, free_slots, directive, started_at, last_seen_at, instance, dead_after_ms)
VALUES ($1, $2, $3, $4, $4, 'run', now(), now(), $5, coalesce($6, $7))
ON CONFLICT (name) DO UPDATE SET last_seen_at = excluded.last_seen_at,
    -- In one sub-select, so that what is fresh is said once; it sees the row as it is locked.
    (queues, job_types, concurrency, free_slots, directive, started_at, instance, dead_after_ms) = (
        SELECT CASE WHEN said THEN excluded.queues ELSE w.queues END,
            CASE WHEN said THEN excluded.job_types ELSE w.job_types END,
            CASE WHEN said THEN excluded.concurrency ELSE w.concurrency END,
            CASE WHEN fresh THEN excluded.free_slots ELSE w.free_slots END,
            CASE WHEN fresh THEN 'run' ELSE w.directive END,
            CASE WHEN fresh THEN excluded.started_at ELSE w.started_at END,
            CASE WHEN fresh THEN $5 ELSE w.instance END,
            CASE WHEN fresh THEN excluded.dead_after_ms WHEN said THEN coalesce($6, w.dead_after_ms) ELSE w.dead_after_ms END
        FROM (SELECT CASE WHEN $5 IS NULL THEN w.last_seen_at < now() - w.dead_after_ms * interval '1 millisecond'
            ELSE w.instance IS DISTINCT FROM $5 END AS fresh) AS start
        CROSS JOIN LATERAL (SELECT fresh OR $5 IS NOT NULL OR w.instance IS NULL AS said) AS own)
RETURNING w.directive
