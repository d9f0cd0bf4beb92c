-- Completed jobs of today. $1 count.
INSERT INTO orchestrix.history (
    id, created_at, finished_at, eligible_at, started_at, lease_secret, state, lease_counter, lease_ms, rank, attempts, max_attempts,
    losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, payload)
SELECT orchestrix.new_id(), now(), now(), now(), now(), gen_random_uuid(), 'completed', 1, 30000, 0, 1, 10,
       0, false, false, false, 'default', 'email.send', 'default', 'bench-0',
       format('{"user":%s,"template":"welcome","locale":"en-GB"}', n)
FROM generate_series(1, $1::bigint) AS n
