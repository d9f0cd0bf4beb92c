-- Notes that a job has finished and its dependents must be told. ?1 id, ?2 whether it failed.
INSERT INTO settled (id, failed) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET failed = excluded.failed
