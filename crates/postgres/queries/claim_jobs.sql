-- The second of four parts of a claim. The claim leases the first pending jobs of the ready batches that the first part
-- read, in the order of turns, and skips jobs that other transactions have locked. The third part picks them
-- (`claim_in_turns.sql`, or `claim_in_one_turn.sql`), and `claim_leases.sql` is the last.
-- The visits, one for each scan, priority and tenant: $1 queues, $2 types, $3 ranks, $4 ring positions, $5 times and $6 ids
-- where each starts, $7 the number of its turn in the order of claims (visits of one priority and tenant share it), $8
-- the jobs that the tenant has had in this turn. $9 batches to read per visit, $10 jobs that a tenant of weight 1 gets in
-- a turn, $11 jobs wanted, $12 worker, $13 secret, $14 queues and $15 types to skip other batches by, null for none; $16
-- the last turn that is known if there are more, or null; $17 see claim_jobs_shared.sql.
-- Relies on the primary keys of job and tenant.
-- The first part locks batches, so that concurrent claims read the next ones instead of skipping job after job.
-- The order of a job is its priority, its round (how many full turns its tenant has before it), the turn of its tenant,
-- its time of eligibility and its id. A visit that returns as many batches as it may read has more, so its jobs are known
-- only up to its last batch: the bound of its turn. The horizon is the first place in the order that a bound hides. Jobs
-- after it are left to the next round.
-- A visit begins at its start, so that it does not walk the dead index entries before it, and ends with its tenant. Only a
-- comparison of the ring position alone ends it: after one of rows the scan would go on through all later tenants. Ranges
-- let the planner expect several batches, so it prefers the index in their order.
-- Parameters are sub-selects where their values would change the estimates: the server then prefers one generic plan to
-- planning every claim.
-- Returns the jobs, and one row without an id: whether the horizon hides jobs; how many batches and jobs were read, and
-- how many jobs were locked; whether batches were skipped because another claim has locked them; paused queues whose
-- batches were found; visits without more jobs; and visits whose jobs are all leased so far, with where they go on.
listed AS MATERIALIZED (
    SELECT b.*, row_number() OVER (PARTITION BY n ORDER BY eligible_at, first_id) AS nth FROM batch b
), found AS MATERIALIZED (
    -- The bound of the turn, and the jobs that its tenant gets in one turn, with every batch: the planner expects few rows
    -- and would join lists by comparing each pair.
    SELECT l.*, first_value(nth = $9) OVER by_bound AS is_bounded, first_value(eligible_at) OVER by_bound AS bound_at,
           first_value(first_id) OVER by_bound AS bound_id,
           (SELECT $10::bigint) * coalesce(max(CASE nth WHEN 1 THEN (SELECT t.weight FROM orchestrix.tenant t WHERE t.name = l.tenant) END)
               OVER (PARTITION BY turn), 1) AS allowance
    FROM listed l
    WINDOW by_bound AS (PARTITION BY turn ORDER BY (nth = $9) DESC, eligible_at, first_id)
), paused AS MATERIALIZED (
    SELECT name FROM orchestrix.queue WHERE paused AND name = ANY (ARRAY(SELECT queue FROM found))
), visited AS MATERIALIZED (
    SELECT f.* FROM found f
    WHERE ((SELECT $14::text[]) IS NULL OR f.queue IN (SELECT unnest((SELECT $14::text[]))))
      AND ((SELECT $15::text[]) IS NULL OR f.job_type IN (SELECT unnest((SELECT $15::text[]))))
      AND NOT EXISTS (SELECT FROM paused p WHERE p.name = f.queue)
      AND NOT (f.is_bounded AND (f.eligible_at, f.first_id) > (f.bound_at, f.bound_id))
),
