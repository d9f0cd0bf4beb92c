-- Deletes a job's checkpoint. ?1 job.
-- Uses the primary key.
DELETE FROM checkpoint WHERE id = ?1
