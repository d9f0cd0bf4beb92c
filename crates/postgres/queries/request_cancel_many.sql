-- Requests the cancellation of leased jobs that this transaction has locked. $1 ids. Relies on the primary key.
UPDATE orchestrix.job SET cancel_requested = true
WHERE id = ANY ($1::uuid[]) AND state IN ('dispatched', 'running') AND NOT cancel_requested
