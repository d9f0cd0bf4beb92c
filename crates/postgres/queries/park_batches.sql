-- Takes ready batches of paused queues out of the order of claims, so that claims need not walk them again. $1 queues
-- (sorted), $2 batches per queue. Relies on the primary key of queue and on ready_queue.
-- The queues are locked, so that none is resumed before its batches are parked. A queue that is being parked, paused or
-- resumed is skipped.
WITH paused AS MATERIALIZED (
    SELECT name FROM orchestrix.queue WHERE paused AND name = ANY ($1::text[]) ORDER BY name FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE orchestrix.ready SET parked = true
WHERE ctid = ANY (ARRAY(
    SELECT r.place FROM paused p
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM orchestrix.ready WHERE NOT parked AND queue = p.name
        ORDER BY rank, ring, eligible_at, first_id LIMIT (SELECT $2::bigint) FOR UPDATE SKIP LOCKED) AS r))
