-- The third part of a claim that visits several tenants or priorities: numbers the pending jobs of each tenant, and locks
-- the first in the order of turns. claim_jobs.sql explains the terms.
candidate AS MATERIALIZED (
    -- A job that became claimable twice at the same time is in two batches.
    SELECT DISTINCT ON (v.turn, v.eligible_at, i.id) v.place AS batch, v.n, v.rank, v.turn, v.taken, v.allowance, v.is_bounded, v.eligible_at, i.id, j.place
    FROM visited v CROSS JOIN unnest(v.ids) AS i (id)
    CROSS JOIN LATERAL (
        SELECT j.ctid AS place FROM orchestrix.job j
        WHERE j.id = i.id AND j.state = 'pending' AND j.rank = v.rank AND j.eligible_at = v.eligible_at
          AND (j.expires_at IS NULL OR j.expires_at > now() OR j.started_at IS NOT NULL)
        -- Keeps the planner from joining whole tables.
        LIMIT 1) AS j
    WHERE NOT (v.is_bounded AND (v.eligible_at, i.id) > (v.bound_at, v.bound_id))
    ORDER BY v.turn, v.eligible_at, i.id
), numbered AS MATERIALIZED (
    SELECT c.*, row_number() OVER by_age AS nth, count(*) OVER (PARTITION BY turn) AS jobs,
           (least(c.taken, c.allowance) + row_number() OVER by_age - 1) / c.allowance AS round
    FROM candidate c
    WINDOW by_age AS (PARTITION BY turn ORDER BY eligible_at, id)
), horizon AS MATERIALIZED (
    SELECT rank, round, turn FROM (
        SELECT rank, (least(taken, allowance) + jobs) / allowance AS round, turn FROM numbered WHERE is_bounded AND nth = 1
        UNION ALL SELECT rank, 0, turn FROM found WHERE is_bounded AND nth = 1 AND turn NOT IN (SELECT turn FROM candidate)
        UNION ALL SELECT rank, 0, turn FROM visit WHERE turn = $16::int4
    ) AS h ORDER BY rank, round, turn LIMIT 1
), ordered AS MATERIALIZED (
    SELECT c.* FROM numbered c
    WHERE NOT EXISTS (SELECT FROM horizon h WHERE (c.rank, c.round, c.turn) > (h.rank, h.round, h.turn))
    ORDER BY c.rank, c.round, c.turn, c.eligible_at, c.id
), picked AS MATERIALIZED (
    SELECT c.batch, c.n, c.id, c.turn, c.round, c.allowance, j.place
    FROM ordered c
    CROSS JOIN LATERAL (
        SELECT j.ctid AS place FROM orchestrix.job j
        WHERE j.ctid = c.place AND j.id = c.id AND j.state = 'pending' AND j.rank = c.rank AND j.eligible_at = c.eligible_at
        FOR NO KEY UPDATE SKIP LOCKED) AS j
    LIMIT (SELECT $11::bigint)
), left_over AS MATERIALIZED (
    -- The visits and batches with jobs that this round leaves.
    SELECT DISTINCT n, batch FROM candidate WHERE id NOT IN (SELECT id FROM picked)
),
