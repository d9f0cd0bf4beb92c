-- Forgets a worker. ?1 name.
DELETE FROM worker WHERE name = ?1
