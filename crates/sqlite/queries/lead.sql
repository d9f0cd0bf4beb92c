-- Begins or renews a term. ?1 epoch, ?2 node, ?3 ends at.
UPDATE leader SET epoch = ?1, node = ?2, ends_at = ?3 WHERE only_one = 1
