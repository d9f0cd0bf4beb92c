-- A page of workers, by name. ?1 after this name, ?2 limit.
-- Uses the primary key.
SELECT name, queues, job_types, concurrency, free_slots, directive, started_at, last_seen_at, instance, dead_after_ms
FROM worker WHERE name > ?1 ORDER BY name LIMIT ?2
