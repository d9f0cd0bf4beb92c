-- Writes a line. ?1 schedule, ?2 nominal time, ?3 the last of them, ?4 how many, ?5 what became of it, ?6 why, ?7 its job, ?8 now.
INSERT INTO occurrence (schedule, nominal, until, count, outcome, reason, job, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
