-- All rows besides finished jobs: {pending} pending jobs of the two hours before {now}, and some rows of every other
-- kind.
INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, state, rank, max_attempts, queue, job_type, tenant, options, payload)
SELECT bench_id(at, i), at, at, at, 'pending', -(i % 3), 10, 'queue-' || i % 20, 'type-' || i % 50, 'tenant-' || i % 100,
    CASE WHEN i % 10 = 0 THEN jsonb_build_object('tags', jsonb_build_array('billing'), 'correlationId', 'order-' || i) END,
    '{"to": "user-' || i || '@example.com", "subject": "Your order is on its way"}'
FROM (SELECT i, timestamptz '{now}' - interval '2 hours' + i * (interval '2 hours' / {pending}) AS at FROM generate_series(1, {pending}::bigint) AS i) AS n;

-- For every fifty pending jobs one that is scheduled, one retrying, one blocked and one held; and a thousand running
-- jobs.
INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, state, waits_for, has_parents, rank, attempts, max_attempts, queue, job_type, tenant, payload)
SELECT bench_id(at, i), at, at, at + interval '3 hours', state, (state = 'blocked')::integer, state = 'blocked', 0, (state = 'retrying')::integer, 10,
    'queue-' || i % 20, 'type-' || i % 50, 'tenant-' || i % 100, '{}'
FROM (SELECT i, timestamptz '{now}' - interval '3 hours' + i * (interval '1 hour' / {pending}) AS at,
             (ARRAY['scheduled', 'retrying', 'blocked', 'created']::orchestrix.job_state[])[1 + i % 4] AS state
      FROM generate_series(1, {pending}::bigint / 12) AS i) AS n;
INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, started_at, lease_expires_at, lease_secret, lease_counter, worker, state, rank, max_attempts,
    queue, job_type, tenant, payload)
SELECT bench_id(at, i), at, at, at, at, at + interval '1 day', md5(i::text)::uuid, 1, 'worker-' || i, 'running', 0, 10, 'queue-' || i % 20, 'type-' || i % 50,
    'tenant-' || i % 100, '{}'
FROM (SELECT i, timestamptz '{now}' - interval '4 hours' + i * interval '1 second' AS at FROM generate_series(1, 1000) AS i) AS n;

-- One dead job per hundred finished ones.
INSERT INTO orchestrix.dead (id, created_at, finished_at, eligible_at, started_at, lease_secret, state, lease_counter, lease_ms, rank, attempts, max_attempts,
    losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, reason, options, attempt_log, payload)
SELECT bench_id(at, i), at, at + interval '1 minute', at, at, md5(i::text)::uuid, 'dead', 3, 30000, 0, 3, 3, 0, false, false, false,
    CASE WHEN i <= 100 THEN 'rare' ELSE 'queue-' || i % 20 END, 'type-' || i % 50, 'tenant-' || i % 100, 'worker-' || i % 1000, 'the mail server refused, ' || i,
    CASE WHEN i <= 100 THEN '{"tags": ["rare"]}'::jsonb WHEN i % 10 = 0 THEN '{"tags": ["billing"]}' END,
    (SELECT jsonb_agg(jsonb_build_object('attempt', a, 'lease', a, 'outcome', 'failed', 'to', 'retrying', 'worker', 'worker-1', 'secret', md5(i::text)::uuid,
        'startedAt', at, 'endedAt', at, 'error', 'the mail server refused')) FROM generate_series(1, 3) AS a), '{}'
FROM (SELECT i, timestamptz '{now}' - interval '7 days' + i * (interval '7 days' / {finished} * 100) AS at
      FROM generate_series(1, {finished}::bigint / 100) AS i) AS n;

-- Parents of blocked jobs: one running job each; the first one also has a thousand finished parents.
INSERT INTO orchestrix.dependency
SELECT j.id, (SELECT id FROM orchestrix.job WHERE state = 'running' ORDER BY id LIMIT 1), false FROM orchestrix.job j WHERE j.state = 'blocked';
INSERT INTO orchestrix.dependency
SELECT (SELECT min(id::text)::uuid FROM orchestrix.job WHERE state = 'blocked'), h.id, true
FROM (SELECT id FROM orchestrix.history ORDER BY id DESC LIMIT 1000) AS h ON CONFLICT DO NOTHING;
INSERT INTO orchestrix.dependency
SELECT h.id, p.id, true FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM orchestrix.history WHERE has_parents) AS h
JOIN (SELECT id, row_number() OVER (ORDER BY id) AS n FROM orchestrix.history WHERE has_dependents) AS p USING (n);

-- Two log lines for every tenth finished job, and a hundred thousand for the newest dead job.
INSERT INTO orchestrix.log (job_id, recorded_at, at, attempt, level, message)
SELECT id, created_at, created_at, 1, 'info', 'line ' || line || ' of what it had to say'
FROM orchestrix.history, generate_series(1, 2) AS line WHERE substr(id::text, 15, 4) < '719a';
INSERT INTO orchestrix.log (job_id, recorded_at, at, attempt, level, message)
SELECT (SELECT id FROM orchestrix.dead ORDER BY id DESC LIMIT 1), timestamptz '{now}', timestamptz '{now}', 1, 'info', 'line ' || line
FROM generate_series(1, 100000) AS line;

-- Folded depths, and as many unfolded deltas as accumulate after a change of the leader.
INSERT INTO orchestrix.depth SELECT queue, state, count(*) FROM orchestrix.job GROUP BY queue, state;
INSERT INTO orchestrix.depth_delta
SELECT 'pending', ARRAY['queue-' || i % 20], ARRAY[CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END] FROM generate_series(1, 5000) AS i;
INSERT INTO orchestrix.queue SELECT 'paused-' || i, true FROM generate_series(1, 100) AS i;

-- Two thousand workers, half of them expired; none takes type-7. Fifty nodes; the first leads.
INSERT INTO orchestrix.worker
SELECT 'worker-' || i, ARRAY['queue-' || i % 20], (SELECT array_agg('type-' || t) FROM generate_series(0, 49) AS t WHERE t <> 7), 10, 3, 'run',
    timestamptz '{now}' - interval '1 hour', timestamptz '{now}' + CASE WHEN i % 2 = 0 THEN interval '1 day' ELSE interval '-1 hour' END
FROM generate_series(1, 2000) AS i;
INSERT INTO orchestrix.node SELECT 'node-' || i, '127.0.0.1:8080', ARRAY['api'], '{now}', '{now}' FROM generate_series(1, 50) AS i;
UPDATE orchestrix.leader_term SET node = 'node-1', epoch = 1, ends_at = timestamptz '{now}' + interval '1 day';

-- Ten thousand copies of the one schedule, and a long ledger for the first.
INSERT INTO orchestrix.schedule (name, definition, paused, created_at, updated_at, counted_from, next_nominal, next_fire_at, last_fired_at, open_jobs, tzdb)
SELECT 'bench-' || i, definition, paused, created_at, updated_at, counted_from, next_nominal, next_fire_at, last_fired_at, open_jobs, tzdb
FROM orchestrix.schedule, generate_series(1, 10000) AS i WHERE name = 'bench';
INSERT INTO orchestrix.occurrence
SELECT 'bench', timestamptz '{now}' - i * interval '1 minute', timestamptz '{now}' - i * interval '1 minute', 1, 'fired', NULL, gen_random_uuid(), '{now}'
FROM generate_series(1, 100000) AS i;

-- Ten thousand finished copies of the one operation; as many keys; and an audit entry per ten finished jobs. The
-- oldest entries are the only ones of their actor.
INSERT INTO orchestrix.operation (id, action, priority, filter, dry_run, state, matched, changed, created_at, updated_at, finished_at, actor, tenant)
SELECT bench_id(at, i), action, priority, filter, dry_run, 'done', 1000, 1000, at, at, at, 'key:operator' || i % 1000, CASE WHEN i % 2 = 0 THEN 'tenant-' || i % 100 END
FROM (SELECT o.*, i, timestamptz '{now}' - i * interval '1 minute' AS at FROM orchestrix.operation AS o, generate_series(1, 10000) AS i) AS n;
INSERT INTO orchestrix.api_key (id, digest, name, role, tenant, created_at, revoked_at)
SELECT lpad(i::text, 12, 'k'), sha256(i::text::bytea), 'key ' || i, (ARRAY['client', 'worker', 'operator', 'admin'])[1 + i % 4],
    CASE WHEN i % 4 <> 1 THEN 'tenant-' || i % 100 END, '{now}', CASE WHEN i % 10 = 0 THEN timestamptz '{now}' END
FROM generate_series(1, 10000) AS i;
INSERT INTO orchestrix.audit (at, actor, tenant, action, target, detail, request_id, outcome)
SELECT at, CASE WHEN i <= 100 THEN 'key:rare' ELSE 'key:operator' || i % 1000 END, CASE WHEN i % 2 = 0 THEN 'tenant-' || i % 100 END,
    CASE WHEN i % 3 = 0 THEN 'PUT /admin/queues/{name}' ELSE 'POST /admin/jobs/{jobId}/cancel' END,
    CASE WHEN i % 3 = 0 THEN '/admin/queues/queue-' || i % 20 ELSE '/admin/jobs/' || bench_id(at, i) || '/cancel' END,
    CASE WHEN i % 3 = 0 THEN '{"paused": true}' END, gen_random_uuid()::text, CASE WHEN i % 3 = 0 THEN '200' ELSE '202' END
FROM (SELECT i, timestamptz '{now}' - interval '7 days' + i * (interval '7 days' / ({finished} / 10)) AS at
      FROM generate_series(1, {finished}::bigint / 10) AS i) AS n;
