-- Makes a worker known, or known anew. ?1 name, ?2 queues, ?3 types, ?4 concurrency, ?5 now.
INSERT OR REPLACE INTO worker (name, queues, job_types, concurrency, free_slots, directive, started_at, last_seen_at)
VALUES (?1, ?2, ?3, ?4, ?4, 'run', ?5, ?5)
