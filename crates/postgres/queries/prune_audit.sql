-- Forgets entries of the audit past their retention, the lowest numbers first, which are the oldest. $1 milliseconds, $2 how many. Relies on
-- the primary key.
DELETE FROM orchestrix.audit WHERE seq = ANY (ARRAY(SELECT seq FROM orchestrix.audit ORDER BY seq LIMIT (SELECT $2::bigint)))
    AND at <= now() - $1::bigint * interval '1 millisecond'
RETURNING 1
