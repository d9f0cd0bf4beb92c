-- Forgets a node. ?1 name.
DELETE FROM node WHERE name = ?1
