-- Requests the cancellation of a leased job from its worker. $1 id. Relies on the primary key.
UPDATE orchestrix.job SET cancel_requested = true
WHERE id = $1 AND state IN ('dispatched', 'running')
RETURNING state::text
