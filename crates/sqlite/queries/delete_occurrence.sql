-- Deletes one occurrence. ?1 schedule, ?2 nominal time.
-- Uses the primary key.
DELETE FROM occurrence WHERE schedule = ?1 AND nominal = ?2
