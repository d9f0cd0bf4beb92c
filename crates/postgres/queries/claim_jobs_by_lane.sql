-- The first part of a claim: ready batches of one queue and type each. Relies on ready_lane. claim_jobs.sql is the second part and explains
-- the parameters.
WITH scan AS MATERIALIZED (
    SELECT s.* FROM unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::int2[]), (SELECT $4::timestamptz[]), (SELECT $5::uuid[])) WITH ORDINALITY
        AS s (queue, job_type, rank, eligible_at, id, n)
    WHERE NOT EXISTS (SELECT FROM orchestrix.queue q WHERE q.name = s.queue AND q.paused)
), batch AS MATERIALIZED (
    SELECT s.n, b.* FROM scan s CROSS JOIN LATERAL (
        SELECT ctid AS place, rank, eligible_at, first_id, queue, job_type, ids FROM orchestrix.ready
        WHERE NOT parked AND queue = s.queue AND job_type = s.job_type AND (rank, eligible_at, first_id) >= (s.rank, s.eligible_at, s.id)
        ORDER BY rank, eligible_at, first_id LIMIT (SELECT $6::bigint) FOR UPDATE SKIP LOCKED) AS b
), visible AS MATERIALIZED (
    -- Read only to find out whether batches were skipped.
    SELECT FROM scan s CROSS JOIN LATERAL (
        SELECT FROM orchestrix.ready
        WHERE NOT parked AND queue = s.queue AND job_type = s.job_type AND (rank, eligible_at, first_id) >= (s.rank, s.eligible_at, s.id)
        ORDER BY rank, eligible_at, first_id LIMIT (SELECT $6::bigint)) AS b
), 
