-- Extends the leases of current tokens, also of leases that expired and were not reaped yet. $1 ids, $2 counters, $3
-- secrets. Relies on the primary key. read_attempts.sql explains the form of the `item` CTE.
-- A row that another transaction has locked is not extended, and the result says so: one slow transaction must not
-- cost a worker its other leases.
WITH item AS MATERIALIZED (
    SELECT i.* FROM unnest((SELECT $1::uuid[]), (SELECT $2::integer[]), (SELECT $3::uuid[])) AS i (id, counter, secret)
    WHERE i.counter BETWEEN 0 AND 2147483647
), current AS MATERIALIZED (
    SELECT j.* FROM item i
    CROSS JOIN LATERAL (
        SELECT j.id, j.lease_counter, j.lease_expires_at, j.cancel_requested, j.lease_secret FROM orchestrix.job j
        WHERE j.id = ANY (ARRAY[i.id]) AND j.lease_counter = i.counter AND j.lease_secret = i.secret AND j.state IN ('dispatched', 'running')) AS j
), mine AS MATERIALIZED (
    SELECT j.* FROM item i
    CROSS JOIN LATERAL (
        SELECT j.id FROM orchestrix.job j
        WHERE j.id = ANY (ARRAY[i.id]) AND j.lease_counter = i.counter AND j.lease_secret = i.secret AND j.state IN ('dispatched', 'running')
        FOR NO KEY UPDATE SKIP LOCKED) AS j
), renewed AS (
    -- By id and not by ctid: a progress report may have moved the row since this statement began.
    UPDATE orchestrix.job AS j
    SET lease_expires_at = now() + j.lease_ms * interval '1 millisecond'
    WHERE j.id = ANY (ARRAY(SELECT id FROM mine))
    RETURNING j.id, j.lease_counter, j.lease_expires_at, j.cancel_requested, j.lease_secret
)
SELECT id, lease_counter, lease_expires_at, cancel_requested, lease_secret, true AS renewed FROM renewed
UNION ALL
-- All current leases: the caller subtracts the renewed ones, which is cheaper than an anti-join of two lists whose
-- lengths the planner cannot know.
SELECT id, lease_counter, lease_expires_at, cancel_requested, lease_secret, false FROM current
