-- A page of a schedule's occurrences, newest nominal time first. ?1 schedule, ?2 before this time, ?3 limit.
-- Uses the primary key.
SELECT nominal, until, count, outcome, reason, job, at FROM occurrence
WHERE schedule = ?1 AND nominal < ?2 ORDER BY nominal DESC LIMIT ?3
