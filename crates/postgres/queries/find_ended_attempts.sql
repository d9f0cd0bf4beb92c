-- How attempts ended, by token: the answer to a repeated report. $1 ids, $2 counters, $3 secrets.
-- Relies on the primary keys.
SELECT i.n, e.outcome, e."to", e.error, t.result
FROM unnest($1::uuid[], $2::integer[], $3::uuid[]) WITH ORDINALITY AS i (id, counter, secret, n)
CROSS JOIN LATERAL (
    SELECT j.state, j.lease_counter, j.lease_secret, j.attempt_log, NULL::text AS result FROM orchestrix.job j WHERE j.id = i.id
    UNION ALL
    SELECT d.state, d.lease_counter, d.lease_secret, d.attempt_log, NULL FROM orchestrix.dead d WHERE d.id = i.id
    UNION ALL
    SELECT h.state, h.lease_counter, h.lease_secret, h.attempt_log, h.result FROM orchestrix.history h WHERE h.id = i.id
) AS t
CROSS JOIN LATERAL (
    SELECT r.outcome, r."to", r.error
    FROM jsonb_to_recordset(coalesce(t.attempt_log, '[]')) AS r (lease integer, secret uuid, outcome text, "to" text, error text)
    WHERE r.lease = i.counter AND r.secret = i.secret
    UNION ALL
    SELECT 'completed', 'completed', NULL
    WHERE t.attempt_log IS NULL AND t.state = 'completed' AND t.lease_counter = i.counter AND t.lease_secret = i.secret
) AS e
