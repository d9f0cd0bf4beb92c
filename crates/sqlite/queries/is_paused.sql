-- Whether a queue is paused. ?1 name.
SELECT paused FROM queue WHERE name = ?1
