-- Says what a worker should do. $1 name, $2 directive.
UPDATE orchestrix.worker SET directive = $2 WHERE name = $1 RETURNING 1
