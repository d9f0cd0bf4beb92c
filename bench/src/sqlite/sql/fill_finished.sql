-- Completed jobs, a thousand per millisecond of the recent past. ?1 count.
INSERT INTO job (
    id, state, queue, job_type, tenant, rank, attempts, max_attempts, lease_counter, lease_secret, lease_ms,
    created_at, updated_at, eligible_at, started_at, finished_at, worker, payload)
WITH RECURSIVE
    begun (ms) AS (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?1 / 1000),
    series (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM series WHERE n + 1 < ?1)
SELECT unhex(printf('%012x7%03xA%s', ms + n / 1000, n % 1000, substr(hex(randomblob(8)), 1, 15))),
       'completed', 'default', 'email.send', 'default', 0, 1, 10, 1, randomblob(16), 30000,
       (ms + n / 1000) * 1000, (ms + n / 1000) * 1000, (ms + n / 1000) * 1000, (ms + n / 1000) * 1000, (ms + n / 1000) * 1000,
       'bench-0', printf('{"user":%d,"template":"welcome","locale":"en-GB"}', n)
FROM series, begun
