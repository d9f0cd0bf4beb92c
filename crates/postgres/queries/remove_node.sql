-- Removes a node. $1 name. Relies on the primary key.
DELETE FROM orchestrix.node WHERE name = $1 RETURNING name
