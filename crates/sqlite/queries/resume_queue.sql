-- Lets claims from a queue go on. ?1 name.
DELETE FROM queue WHERE name = ?1
