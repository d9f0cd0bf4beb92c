-- Asks the owner of a leased job to stop. ?1 id.
UPDATE job SET cancel_requested = 1 WHERE id = ?1 AND state IN ('running', 'dispatched')
