-- The tenants with ready batches of any queue and type: one row for each priority and tenant, in the order of the index, with its
-- first batch. $1 queues, $2 types, $3 ranks and $4 ring positions: the scans, and where each starts. $5 rows per scan.
-- Relies on ready_order.
-- Hops from one tenant to the next, so the cost follows the tenants returned, not their jobs.
WITH RECURSIVE scan AS MATERIALIZED (
    SELECT s.* FROM unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::int2[]), (SELECT $4::int8[])) WITH ORDINALITY
        AS s (queue, job_type, rank, ring, n)
), turn AS (
    SELECT s.n, s.queue, s.job_type, f.*, 1 AS nth FROM scan s CROSS JOIN LATERAL (
        SELECT rank, ring, eligible_at, first_id FROM orchestrix.ready
        WHERE NOT parked AND (rank, ring) >= (s.rank, s.ring)
        ORDER BY rank, ring, eligible_at, first_id LIMIT 1) AS f
    UNION ALL
    SELECT t.n, t.queue, t.job_type, f.*, t.nth + 1 FROM turn t CROSS JOIN LATERAL (
        SELECT rank, ring, eligible_at, first_id FROM orchestrix.ready
        WHERE NOT parked AND (rank, ring) > (t.rank, t.ring)
        ORDER BY rank, ring, eligible_at, first_id LIMIT 1) AS f
    WHERE t.nth < (SELECT $5::bigint)
)
SELECT n, rank, ring, eligible_at, first_id FROM turn
