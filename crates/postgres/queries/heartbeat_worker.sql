-- Renews a worker's heartbeat and returns its directive; returns no row once the worker counts as dead.
-- $1 name, $2 free slots (null: unchanged), $3 whether the worker drains by itself, $4 instance (null: unknown).
-- An instance whose name another instance has taken changes nothing and gets `run`. Relies on the primary key.
WITH own AS MATERIALIZED (
    SELECT name, $4::text IS NULL OR instance IS NULL OR instance = $4 AS is_own FROM orchestrix.worker
    WHERE name = $1 AND last_seen_at >= now() - dead_after_ms * interval '1 millisecond'
    FOR NO KEY UPDATE
), shown AS (
    UPDATE orchestrix.worker w SET last_seen_at = now(), free_slots = coalesce($2, w.free_slots),
        directive = CASE WHEN $3 AND w.directive = 'run' THEN 'drain' ELSE w.directive END
    FROM own WHERE w.name = own.name AND own.is_own
    RETURNING w.directive
)
SELECT directive FROM shown UNION ALL SELECT 'run' FROM own WHERE NOT is_own
