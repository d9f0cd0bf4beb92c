-- Deletes a depth that has dropped to zero. ?1 queue, ?2 state.
-- Uses the primary key.
DELETE FROM depth WHERE queue = ?1 AND state = ?2 AND n = 0
