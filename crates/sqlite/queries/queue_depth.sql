-- Unfinished jobs of one queue, counted by state. ?1 queue.
-- Uses the primary key.
SELECT queue, state, n FROM depth WHERE queue = ?1
