-- Asks the lease owner of a job to stop. ?1 id.
-- Uses the primary key.
UPDATE job SET cancel_requested = 1 WHERE id = ?1 AND state IN ('running', 'dispatched')
