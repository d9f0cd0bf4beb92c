-- Notes that a job has finished and its dependents must be resolved. ?1 id, ?2 whether it failed.
-- Uses the primary key.
INSERT INTO settled (id, failed) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET failed = excluded.failed
