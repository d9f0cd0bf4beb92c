-- What decides the end of an attempt, for current tokens. $1 ids, $2 counters, $3 secrets. Relies on the primary key.
-- A prepared plan stays in use while the table grows from twenty rows to a million, so it must search the key item by
-- item from the start. Four things ensure that, here and in similar statements: arrays come through sub-selects, so
-- the planner does not see their length; a range that includes every counter makes it expect one item; connections
-- disable sequential scans; and an id is compared with an array of one. For `=` alone the planner may read the whole
-- index in the order of ids instead, which it believes to cost as little while the table has at most one row.
WITH item AS MATERIALIZED (
    SELECT i.* FROM unnest((SELECT $1::uuid[]), (SELECT $2::integer[]), (SELECT $3::uuid[])) AS i (id, counter, secret)
    WHERE i.counter BETWEEN 0 AND 2147483647
)
SELECT j.id, j.lease_counter, j.lease_secret, j.state::text, j.attempts, j.max_attempts, j.losses, j.cancel_requested, (j.options -> 'retry')::text AS retry
FROM item i
JOIN orchestrix.job j ON j.id = ANY (ARRAY[i.id]) AND j.lease_counter = i.counter AND j.lease_secret = i.secret
WHERE j.state IN ('dispatched', 'running')
