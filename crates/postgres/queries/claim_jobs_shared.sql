-- The first part of a claim that takes jobs which other claims leave: it reads ready batches without locking them.
-- $17 what the claim selects by: 0 nothing, 1 the type, 2 the queue, 3 both. Relies on ready_order, ready_type,
-- ready_queue and ready_lane. claim_jobs.sql is the second part and explains the other parameters.
WITH visit AS MATERIALIZED (
    SELECT v.* FROM unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::int2[]), (SELECT $4::int8[]), (SELECT $5::timestamptz[]),
                           (SELECT $6::uuid[]), (SELECT $7::int4[]), (SELECT $8::int8[])) WITH ORDINALITY
        AS v (queue, job_type, rank, ring, eligible_at, id, turn, taken, n)
    WHERE NOT EXISTS (SELECT FROM orchestrix.queue q WHERE q.name = v.queue AND q.paused)
), batch AS MATERIALIZED (
    SELECT v.n, v.rank, v.turn, v.taken, b.* FROM visit v CROSS JOIN LATERAL (
        (SELECT ctid AS place, eligible_at, first_id, queue, job_type, tenant, ids FROM orchestrix.ready
         WHERE $17::int2 = 0 AND NOT parked AND rank = v.rank AND (ring, eligible_at, first_id) >= (v.ring, v.eligible_at, v.id) AND ring <= v.ring
         ORDER BY rank, ring, eligible_at, first_id LIMIT (SELECT $9::bigint))
        UNION ALL
        (SELECT ctid AS place, eligible_at, first_id, queue, job_type, tenant, ids FROM orchestrix.ready
         WHERE $17::int2 = 1 AND NOT parked AND job_type = v.job_type AND rank = v.rank AND (ring, eligible_at, first_id) >= (v.ring, v.eligible_at, v.id) AND ring <= v.ring
         ORDER BY rank, ring, eligible_at, first_id LIMIT (SELECT $9::bigint))
        UNION ALL
        (SELECT ctid AS place, eligible_at, first_id, queue, job_type, tenant, ids FROM orchestrix.ready
         WHERE $17::int2 = 2 AND NOT parked AND queue = v.queue AND rank = v.rank AND (ring, eligible_at, first_id) >= (v.ring, v.eligible_at, v.id) AND ring <= v.ring
         ORDER BY rank, ring, eligible_at, first_id LIMIT (SELECT $9::bigint))
        UNION ALL
        (SELECT ctid AS place, eligible_at, first_id, queue, job_type, tenant, ids FROM orchestrix.ready
         WHERE $17::int2 = 3 AND NOT parked AND queue = v.queue AND job_type = v.job_type AND rank = v.rank AND (ring, eligible_at, first_id) >= (v.ring, v.eligible_at, v.id) AND ring <= v.ring
         ORDER BY rank, ring, eligible_at, first_id LIMIT (SELECT $9::bigint))) AS b
), visible AS MATERIALIZED (
    SELECT FROM batch
), 
