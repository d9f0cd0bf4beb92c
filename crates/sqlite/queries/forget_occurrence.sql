-- Takes out a line. ?1 schedule, ?2 nominal time.
DELETE FROM occurrence WHERE schedule = ?1 AND nominal = ?2
