-- Finished jobs past their retention, oldest first. ?1 state, ?2 finished up to this time, ?3 limit.
-- Relies on job_finished.
SELECT id FROM job WHERE finished_at IS NOT NULL AND state = ?1 AND finished_at <= ?2 ORDER BY finished_at LIMIT ?3
