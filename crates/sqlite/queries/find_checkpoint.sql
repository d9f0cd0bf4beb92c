-- The checkpoint that earlier attempts left. ?1 job.
-- Uses the primary key.
SELECT body FROM checkpoint WHERE id = ?1
