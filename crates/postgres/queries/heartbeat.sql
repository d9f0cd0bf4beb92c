-- Extends leases whose token is current, even if they ran out and nobody has taken them back yet. $1 ids, $2 counters, $3 secrets.
-- A row that somebody has locked is left as it is and said to be so: one transaction that is slow to end must not cost a
-- worker all its other leases. Relies on the primary key; why the items are wrapped as they are is said in examine.sql.
WITH item AS MATERIALIZED (
    SELECT i.* FROM unnest((SELECT $1::uuid[]), (SELECT $2::integer[]), (SELECT $3::uuid[])) AS i (id, counter, secret)
    WHERE i.counter BETWEEN 0 AND 2147483647
), current AS MATERIALIZED (
    SELECT j.* FROM item i
    CROSS JOIN LATERAL (
        SELECT j.id, j.lease_counter, j.lease_expires_at, j.cancel_requested, j.lease_secret FROM orchestrix.job j
        WHERE j.id = i.id AND j.lease_counter = i.counter AND j.lease_secret = i.secret AND j.state IN ('dispatched', 'running')) AS j
), mine AS MATERIALIZED (
    SELECT j.* FROM item i
    CROSS JOIN LATERAL (
        SELECT j.id FROM orchestrix.job j
        WHERE j.id = i.id AND j.lease_counter = i.counter AND j.lease_secret = i.secret AND j.state IN ('dispatched', 'running')
        FOR NO KEY UPDATE SKIP LOCKED) AS j
), renewed AS (
    -- By id and not by place: the row may have been written since this statement began, by a progress report for one.
    UPDATE orchestrix.job AS j
    SET lease_expires_at = now() + j.lease_ms * interval '1 millisecond'
    WHERE j.id = ANY (ARRAY(SELECT id FROM mine))
    RETURNING j.id, j.lease_counter, j.lease_expires_at, j.cancel_requested, j.lease_secret
)
SELECT id, lease_counter, lease_expires_at, cancel_requested, lease_secret, true AS renewed FROM renewed
UNION ALL
-- All of them: whoever asks finds out which were not renewed, cheaper than a join of lists whose lengths the planner cannot know.
SELECT id, lease_counter, lease_expires_at, cancel_requested, lease_secret, false FROM current
