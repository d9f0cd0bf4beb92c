-- Unfinished jobs of every queue, counted by state. The caller stops reading when its page is full. ?1 after this
-- queue. Uses the primary key.
SELECT queue, state, n FROM depth WHERE queue > ?1 ORDER BY queue, state
