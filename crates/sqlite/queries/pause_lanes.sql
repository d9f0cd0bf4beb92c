-- Marks the lanes of a queue as paused or not. ?1 queue, ?2 paused.
-- Uses the primary key.
UPDATE lane SET paused = ?2 WHERE queue = ?1
