-- Locks dead and cancelled jobs until this transaction ends, in the order of their ids. $1 ids. Relies on the primary
-- keys.
WITH dead AS MATERIALIZED (
    SELECT id, state::text FROM orchestrix.dead WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE
), cancelled AS MATERIALIZED (
    SELECT id, state::text FROM orchestrix.history WHERE id = ANY ($1::uuid[]) AND state = 'cancelled' ORDER BY id FOR UPDATE
)
SELECT id, state FROM dead UNION ALL SELECT id, state FROM cancelled
