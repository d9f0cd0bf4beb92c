-- The third part of a claim that visits one tenant and priority: the order of jobs is their time of eligibility and id, so
-- they are neither read before they are locked nor numbered. claim_jobs.sql explains the terms.
candidate AS MATERIALIZED (
    -- A job that became claimable twice at the same time is in two batches.
    SELECT DISTINCT ON (v.eligible_at, i.id) v.place AS batch, v.n, v.rank, v.turn, v.allowance, v.eligible_at, i.id
    FROM visited v CROSS JOIN unnest(v.ids) AS i (id)
    WHERE NOT (v.is_bounded AND (v.eligible_at, i.id) > (v.bound_at, v.bound_id))
    ORDER BY v.eligible_at, i.id
), horizon AS MATERIALIZED (
    SELECT FROM found WHERE is_bounded LIMIT 1
), picked AS MATERIALIZED (
    SELECT c.batch, c.n, c.id, c.turn, 0::bigint AS round, c.allowance, j.place
    FROM candidate c
    CROSS JOIN LATERAL (
        SELECT j.ctid AS place FROM orchestrix.job j
        WHERE j.id = c.id AND j.state = 'pending' AND j.rank = c.rank AND j.eligible_at = c.eligible_at
          AND (j.expires_at IS NULL OR j.expires_at > now() OR j.started_at IS NOT NULL)
        FOR NO KEY UPDATE SKIP LOCKED) AS j
    LIMIT (SELECT $11::bigint)
), left_over AS MATERIALIZED (
    -- A round that is not full has visited every job; those that it did not pick cannot be claimed now.
    SELECT DISTINCT n, batch FROM candidate WHERE id NOT IN (SELECT id FROM picked) AND (SELECT count(*) FROM picked) >= $11::bigint
),
