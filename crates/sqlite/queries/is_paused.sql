-- Whether a queue is paused. ?1 name.
-- Uses the primary key.
SELECT paused FROM queue WHERE name = ?1
