-- The line of one nominal time. ?1 schedule, ?2 nominal time.
SELECT nominal, until, count, outcome, reason, job, at FROM occurrence WHERE schedule = ?1 AND nominal = ?2
