-- Records how an attempt ended. ?1 job, ?2 lease counter, ?3 secret, ?4 attempt, ?5 outcome, ?6 state it led to,
-- ?7 worker, ?8 started at, ?9 ended at, ?10 error.
INSERT INTO attempt (job_id, lease, secret, attempt, outcome, goes_to, worker, started_at, ended_at, error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
