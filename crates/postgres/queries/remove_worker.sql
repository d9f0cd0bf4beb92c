-- Forgets a worker. $1 name, $2 which start of it, or null: another that is named stays.
DELETE FROM orchestrix.worker WHERE name = $1 AND ($2::text IS NULL OR instance IS NULL OR instance = $2) RETURNING name
