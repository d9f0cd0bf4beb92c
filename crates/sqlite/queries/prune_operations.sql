-- Deletes finished operations, first finished first. ?1 finished up to this time, ?2 limit.
-- Relies on operation_finished.
DELETE FROM operation WHERE id IN (SELECT id FROM operation WHERE finished_at <= ?1 ORDER BY finished_at LIMIT ?2)
