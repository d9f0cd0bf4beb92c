-- A page of workers. $1 name to start after, $2 limit. Relies on the primary key.
SELECT name, queues, job_types, concurrency, free_slots, directive, started_at, last_seen_at, instance, dead_after_ms,
    (extract(epoch FROM now() - last_seen_at) * 1000000)::bigint AS seen_ago_us
FROM orchestrix.worker WHERE name > $1 ORDER BY name LIMIT $2
