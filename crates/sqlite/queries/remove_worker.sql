-- Deletes a worker, unless another instance has its name. ?1 name, ?2 instance (null: any).
-- Uses the primary key.
DELETE FROM worker WHERE name = ?1 AND (?2 IS NULL OR instance IS NULL OR instance = ?2)
