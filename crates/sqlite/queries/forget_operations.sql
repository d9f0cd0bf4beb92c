-- Forgets operations, those first that were over first. ?1 those of this time or earlier, ?2 how many. Relies on operation_finished.
DELETE FROM operation WHERE id IN (SELECT id FROM operation WHERE finished_at <= ?1 ORDER BY finished_at LIMIT ?2)
