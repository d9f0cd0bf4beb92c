-- Resumes a queue. ?1 name.
-- Uses the primary key.
DELETE FROM queue WHERE name = ?1
