-- Inserts an occurrence. ?1 schedule, ?2 nominal time, ?3 last nominal time, ?4 count, ?5 outcome, ?6 reason, ?7 job,
-- ?8 now.
INSERT INTO occurrence (schedule, nominal, until, count, outcome, reason, job, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
