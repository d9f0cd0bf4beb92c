-- Forgets a schedule. ?1 name.
DELETE FROM schedule WHERE name = ?1
