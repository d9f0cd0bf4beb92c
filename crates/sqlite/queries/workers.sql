-- A page of workers. ?1 after which name, ?2 how many.
SELECT name, queues, job_types, concurrency, free_slots, directive, started_at, last_seen_at, instance, dead_after_ms
FROM worker WHERE name > ?1 ORDER BY name LIMIT ?2
