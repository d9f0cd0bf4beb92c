-- Forgets a count that has come to nothing. ?1 queue, ?2 state.
DELETE FROM depth WHERE queue = ?1 AND state = ?2 AND n = 0
