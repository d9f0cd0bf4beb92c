-- A page of a ledger, the newest nominal time first. ?1 schedule, ?2 before which time, ?3 how many.
SELECT nominal, until, count, outcome, reason, job, at FROM occurrence WHERE schedule = ?1 AND nominal < ?2 ORDER BY nominal DESC LIMIT ?3
