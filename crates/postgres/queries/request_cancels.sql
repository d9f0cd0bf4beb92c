-- Asks the owners of leased jobs to stop. $1 ids, whose rows this transaction holds. Relies on the primary key.
UPDATE orchestrix.job SET cancel_requested = true
WHERE id = ANY ($1::uuid[]) AND state IN ('dispatched', 'running') AND NOT cancel_requested
