-- Forgets a worker. ?1 name, ?2 which start of it, or null: another that is named stays.
DELETE FROM worker WHERE name = ?1 AND (?2 IS NULL OR instance IS NULL OR instance = ?2)
