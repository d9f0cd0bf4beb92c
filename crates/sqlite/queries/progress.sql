-- Records how far a running job has come. ?1 id, ?2 counter, ?3 secret, ?4 progress (null: as it was).
UPDATE job SET progress = coalesce(?4, progress)
WHERE id = ?1 AND lease_counter = ?2 AND lease_secret = ?3 AND state IN ('running', 'dispatched')
