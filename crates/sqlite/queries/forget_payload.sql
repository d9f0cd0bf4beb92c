-- Forgets a payload that was kept apart. ?1 id.
DELETE FROM payload WHERE id = ?1
