-- Deletes a payload from the payload table. ?1 job.
-- Uses the primary key.
DELETE FROM payload WHERE id = ?1
