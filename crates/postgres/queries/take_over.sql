-- Begins a new epoch if the term is over and nobody else is at it. Waits for what is being written in the old leader's name,
-- which the server ends soon. The number comes from the row that was locked, so a takeover that came too late finds none.
-- $1 node, $2 milliseconds.
WITH over AS MATERIALIZED (
    SELECT epoch FROM orchestrix.leader_term WHERE ends_at <= now() FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE orchestrix.leader AS l SET epoch = l.epoch + 1 FROM over WHERE l.epoch = over.epoch
    RETURNING l.epoch
)
UPDATE orchestrix.leader_term AS t
SET epoch = taken.epoch, node = $1, ends_at = now() + $2::bigint * interval '1 millisecond'
FROM taken
RETURNING t.epoch
