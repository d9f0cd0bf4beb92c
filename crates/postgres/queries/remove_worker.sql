-- Removes a worker. $1 name, $2 instance (null: any); a worker of another instance stays. Relies on the primary key.
DELETE FROM orchestrix.worker WHERE name = $1 AND ($2::text IS NULL OR instance IS NULL OR instance = $2) RETURNING name
