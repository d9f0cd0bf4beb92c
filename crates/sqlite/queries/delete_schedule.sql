-- Deletes a schedule. ?1 name.
-- Uses the primary key.
DELETE FROM schedule WHERE name = ?1
