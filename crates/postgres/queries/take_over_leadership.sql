-- Begins a new epoch if the term has ended and no other node is taking over. $1 node, $2 milliseconds.
-- Waits for open transactions of the old leader, which the server ends soon. The new epoch is derived from the row
-- that was locked, so a late takeover matches no row.
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
