-- The first part of a claim that takes jobs which other claims leave: it reads ready batches without locking them.
-- $12 what the scans select by: 0 nothing, 1 the type, 2 the queue, 3 both. Relies on ready_order, ready_type,
-- ready_queue and ready_lane. claim_jobs.sql is the second part and explains the other parameters.
WITH scan AS MATERIALIZED (
    SELECT s.* FROM unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::int2[]), (SELECT $4::timestamptz[]), (SELECT $5::uuid[])) WITH ORDINALITY
        AS s (queue, job_type, rank, eligible_at, id, n)
    WHERE NOT EXISTS (SELECT FROM orchestrix.queue q WHERE q.name = s.queue AND q.paused)
), batch AS MATERIALIZED (
    SELECT s.n, b.* FROM scan s CROSS JOIN LATERAL (
        (SELECT ctid AS place, rank, eligible_at, first_id, queue, job_type, ids FROM orchestrix.ready
         WHERE $12::int2 = 0 AND NOT parked AND (rank, eligible_at, first_id) >= (s.rank, s.eligible_at, s.id)
         ORDER BY rank, eligible_at, first_id LIMIT (SELECT $6::bigint))
        UNION ALL
        (SELECT ctid AS place, rank, eligible_at, first_id, queue, job_type, ids FROM orchestrix.ready
         WHERE $12::int2 = 1 AND NOT parked AND job_type = s.job_type AND (rank, eligible_at, first_id) >= (s.rank, s.eligible_at, s.id)
         ORDER BY rank, eligible_at, first_id LIMIT (SELECT $6::bigint))
        UNION ALL
        (SELECT ctid AS place, rank, eligible_at, first_id, queue, job_type, ids FROM orchestrix.ready
         WHERE $12::int2 = 2 AND NOT parked AND queue = s.queue AND (rank, eligible_at, first_id) >= (s.rank, s.eligible_at, s.id)
         ORDER BY rank, eligible_at, first_id LIMIT (SELECT $6::bigint))
        UNION ALL
        (SELECT ctid AS place, rank, eligible_at, first_id, queue, job_type, ids FROM orchestrix.ready
         WHERE $12::int2 = 3 AND NOT parked AND queue = s.queue AND job_type = s.job_type AND (rank, eligible_at, first_id) >= (s.rank, s.eligible_at, s.id)
         ORDER BY rank, eligible_at, first_id LIMIT (SELECT $6::bigint))) AS b
), visible AS MATERIALIZED (
    SELECT FROM batch
), 
