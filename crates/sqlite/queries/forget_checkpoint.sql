-- Forgets a checkpoint. ?1 id.
DELETE FROM checkpoint WHERE id = ?1
