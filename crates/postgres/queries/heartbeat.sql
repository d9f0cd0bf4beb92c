-- Extends leases whose token is current, even if they ran out and nobody has taken them back yet. $1 ids (sorted, so that
-- two batches lock in one order), $2 counters, $3 secrets. Relies on the primary key; why the items are wrapped as they
-- are is said in examine.sql.
WITH item AS MATERIALIZED (
    SELECT i.* FROM unnest((SELECT $1::uuid[]), (SELECT $2::integer[]), (SELECT $3::uuid[])) AS i (id, counter, secret)
    WHERE i.counter BETWEEN 0 AND 2147483647
)
UPDATE orchestrix.job AS j
SET lease_expires_at = now() + j.lease_ms * interval '1 millisecond'
FROM item i
WHERE j.id = i.id AND j.lease_counter = i.counter AND j.lease_secret = i.secret AND j.state IN ('dispatched', 'running')
RETURNING j.id, j.lease_counter, j.lease_expires_at, j.cancel_requested, j.lease_secret
