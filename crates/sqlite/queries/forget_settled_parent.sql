-- Deletes the note that a job's dependents are unresolved: all are resolved, or the job was redriven. ?1 id.
-- Uses the primary key.
DELETE FROM settled WHERE id = ?1
