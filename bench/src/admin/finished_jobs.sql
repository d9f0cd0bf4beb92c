-- Finished jobs {first} to {last} of {finished}, evenly over the week before {now}. One in thirty was cancelled, one
-- in ten has searchable text, one in twenty had a failed attempt. The first (oldest) thousand are the only ones with
-- their queue, type, tenant and tag.
INSERT INTO orchestrix.history (id, created_at, finished_at, eligible_at, started_at, lease_secret, state, lease_counter, lease_ms, rank, attempts,
    max_attempts, losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, reason, options, attempt_log, payload, result)
SELECT bench_id(at, i), at, at + interval '3 seconds', at, at + interval '1 second', md5(i::text)::uuid,
    CASE WHEN i % 30 = 0 THEN 'cancelled' ELSE 'completed' END::orchestrix.job_state,
    1 + (i % 20 = 1)::integer, 30000, -(i % 3), 1, 10, 0, i % 50 = 0, i % 50 = 49, false,
    CASE WHEN i <= 1000 THEN 'rare' ELSE 'queue-' || i % 20 END,
    CASE WHEN i <= 1000 THEN 'rare' ELSE 'type-' || i % 50 END,
    CASE WHEN i <= 1000 THEN 'rare' ELSE 'tenant-' || i % 100 END,
    'worker-' || i % 1000,
    CASE WHEN i % 30 = 0 THEN 'cancelled by an operator' END,
    CASE WHEN i <= 1000 THEN '{"tags": ["rare"]}'::jsonb
         WHEN i % 10 = 0 THEN jsonb_build_object('tags', jsonb_build_array('billing', 'tag-' || i % 7), 'correlationId', 'order-' || i) END,
    CASE WHEN i % 20 = 1 THEN jsonb_build_array(jsonb_build_object('attempt', 1, 'lease', 1, 'outcome', 'failed', 'to', 'retrying', 'worker', 'worker-1',
        'secret', md5(i::text)::uuid, 'startedAt', at, 'endedAt', at + interval '1 second', 'error', 'the mail server refused')) END,
    '{"to": "user-' || i || '@example.com", "subject": "Your order is on its way", "template": "shipping-confirmation"}',
    CASE WHEN i % 30 <> 0 THEN '{"sent": true}' END
FROM (SELECT i, timestamptz '{now}' - interval '7 days' + i * (interval '7 days' / {finished}) AS at FROM generate_series({first}::bigint, {last}) AS i) AS n
