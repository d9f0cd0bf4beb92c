-- Sets a worker's directive. $1 name, $2 directive. Relies on the primary key.
UPDATE orchestrix.worker SET directive = $2 WHERE name = $1 RETURNING 1
