-- Appends a line to a job's log. ?1 job, ?2 recorded at, ?3 at, ?4 attempt, ?5 level, ?6 message.
INSERT INTO log (job_id, recorded_at, at, attempt, level, message) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
