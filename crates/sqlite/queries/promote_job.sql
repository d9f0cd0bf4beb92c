-- Makes a due job claimable. ?1 id, ?2 now.
-- Uses the primary key.
UPDATE job SET state = 'pending', updated_at = ?2 WHERE id = ?1 AND state IN ('scheduled', 'retrying')
