-- Shows that a worker lives, unless it counts as dead. $1 name, $2 free slots or null for what it last said, $3 whether it drains by itself,
-- $4 which start of it this is, or null. One whose name another start has taken changes nothing, and may go on.
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
