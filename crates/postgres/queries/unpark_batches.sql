-- Returns parked ready batches of a resumed queue to the order of claims, the first ones first. $1 queue, null for any
-- resumed one, $2 limit. Relies on ready_parked and queue_resuming.
-- A claim locks a paused queue before it parks batches, so a transaction that has resumed the queue finds all of them.
WITH resumed AS MATERIALIZED (
    SELECT name FROM orchestrix.queue WHERE resuming AND ($1::text IS NULL OR name = $1) ORDER BY name LIMIT 1 FOR NO KEY UPDATE
), parked AS MATERIALIZED (
    SELECT r.place
    FROM resumed q
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM orchestrix.ready WHERE parked AND queue = q.name
        ORDER BY rank, eligible_at, first_id LIMIT (SELECT $2::bigint) FOR UPDATE) AS r
), returned AS (
    UPDATE orchestrix.ready SET parked = false WHERE ctid = ANY (ARRAY(SELECT place FROM parked))
), done AS (
    UPDATE orchestrix.queue SET resuming = false
    WHERE name IN (SELECT name FROM resumed) AND (SELECT count(*) FROM parked) < $2::bigint
)
SELECT name AS queue, (SELECT count(*) FROM parked) AS batches FROM resumed
