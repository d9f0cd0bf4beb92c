-- Deletes a node. ?1 name.
-- Uses the primary key.
DELETE FROM node WHERE name = ?1
