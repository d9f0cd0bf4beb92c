-- A payload from the payload table. ?1 job.
-- Uses the primary key.
SELECT body FROM payload WHERE id = ?1
