-- Forgets a worker. $1 name.
DELETE FROM orchestrix.worker WHERE name = $1 RETURNING name
