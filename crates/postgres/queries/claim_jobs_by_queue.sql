-- The first part of a claim: ready batches of one queue each, for each priority and tenant that it visits. Relies on ready_queue.
-- claim_jobs.sql is the second part and explains the parameters.
WITH visit AS MATERIALIZED (
    SELECT v.* FROM unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::int2[]), (SELECT $4::int8[]), (SELECT $5::timestamptz[]),
                           (SELECT $6::uuid[]), (SELECT $7::int4[]), (SELECT $8::int8[])) WITH ORDINALITY
        AS v (queue, job_type, rank, ring, eligible_at, id, turn, taken, n)
    WHERE NOT EXISTS (SELECT FROM orchestrix.queue q WHERE q.name = v.queue AND q.paused)
), batch AS MATERIALIZED (
    SELECT v.n, v.rank, v.turn, v.taken, b.* FROM visit v CROSS JOIN LATERAL (
        SELECT ctid AS place, eligible_at, first_id, queue, job_type, tenant, ids FROM orchestrix.ready
        WHERE NOT parked AND queue = v.queue AND rank = v.rank AND (ring, eligible_at, first_id) >= (v.ring, v.eligible_at, v.id) AND ring <= v.ring
        ORDER BY rank, ring, eligible_at, first_id LIMIT (SELECT $9::bigint) FOR UPDATE SKIP LOCKED) AS b
), visible AS MATERIALIZED (
    -- Read only to find out whether batches were skipped.
    SELECT FROM visit v CROSS JOIN LATERAL (
        SELECT FROM orchestrix.ready
        WHERE NOT parked AND queue = v.queue AND rank = v.rank AND (ring, eligible_at, first_id) >= (v.ring, v.eligible_at, v.id) AND ring <= v.ring
        ORDER BY rank, ring, eligible_at, first_id LIMIT (SELECT $9::bigint)) AS b
), 
