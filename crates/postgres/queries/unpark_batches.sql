-- Returns parked ready batches of a resumed queue to the order of claims, the first ones first. $1 queue, which this
-- transaction has locked before, $2 limit. Relies on ready_parked.
-- A claim locks a paused queue to park its batches, so this statement sees all of them, and none is added meanwhile.
WITH parked AS MATERIALIZED (
    SELECT ctid AS place FROM orchestrix.ready WHERE parked AND queue = $1
    ORDER BY rank, eligible_at, first_id LIMIT (SELECT $2::bigint) FOR UPDATE
), returned AS (
    UPDATE orchestrix.ready SET parked = false WHERE ctid = ANY (ARRAY(SELECT place FROM parked))
), done AS (
    UPDATE orchestrix.queue SET resuming = false WHERE name = $1 AND (SELECT count(*) FROM parked) < $2::bigint
)
SELECT count(*) AS batches FROM parked
