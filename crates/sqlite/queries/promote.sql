-- Makes a job whose time has come claimable. ?1 id, ?2 now.
UPDATE job SET state = 'pending', updated_at = ?2 WHERE id = ?1 AND state IN ('scheduled', 'retrying')
