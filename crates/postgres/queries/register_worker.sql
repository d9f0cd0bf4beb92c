-- Makes a worker known, or known anew. $1 name, $2 queues, $3 types, $4 concurrency.
INSERT INTO orchestrix.worker (name, queues, job_types, concurrency, free_slots, directive, started_at, last_seen_at)
VALUES ($1, $2, $3, $4, $4, 'run', now(), now())
ON CONFLICT (name) DO UPDATE SET queues = excluded.queues, job_types = excluded.job_types, concurrency = excluded.concurrency,
    free_slots = excluded.free_slots, directive = 'run', started_at = excluded.started_at, last_seen_at = excluded.last_seen_at
