-- The occurrence that begins at a nominal time. ?1 schedule, ?2 nominal time.
-- Uses the primary key.
SELECT nominal, until, count, outcome, reason, job, at FROM occurrence WHERE schedule = ?1 AND nominal = ?2
