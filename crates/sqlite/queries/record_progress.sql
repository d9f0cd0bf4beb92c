-- Records the progress of a running attempt. ?1 job, ?2 lease counter, ?3 secret, ?4 progress (null: unchanged).
-- Uses the primary key.
UPDATE job SET progress = coalesce(?4, progress)
WHERE id = ?1 AND lease_counter = ?2 AND lease_secret = ?3 AND state IN ('running', 'dispatched')
