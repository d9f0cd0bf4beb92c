-- Pending jobs with ids like UUID v7. $1 count.
INSERT INTO job (id, eligible_at, rank, state, queue, payload)
SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3)
        || 'a' || substr(md5(random()::text), 1, 15))::uuid,
       now() + n * interval '1 microsecond', 0, 0, 'default', format('{"user":%s,"template":"welcome","locale":"en-GB"}', n)
FROM generate_series(1, $1::bigint) AS n
