-- Begins, renews or ends a term. ?1 epoch, ?2 node, ?3 ends at.
-- Uses the primary key.
UPDATE leader SET epoch = ?1, node = ?2, ends_at = ?3 WHERE only_one = 1
