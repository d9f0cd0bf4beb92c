-- Forgets whom a job waited for. ?1 child.
DELETE FROM dependency WHERE child = ?1
