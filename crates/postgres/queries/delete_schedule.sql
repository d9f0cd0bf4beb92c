-- Deletes a schedule. $1 name. Relies on the primary key.
DELETE FROM orchestrix.schedule WHERE name = $1 RETURNING name
