-- Forgets a node. $1 name.
DELETE FROM orchestrix.node WHERE name = $1 RETURNING name
