-- Deletes audit entries past their retention, the lowest sequence numbers first. $1 milliseconds, $2 limit.
-- Relies on the primary key.
DELETE FROM orchestrix.audit WHERE seq = ANY (ARRAY(SELECT seq FROM orchestrix.audit ORDER BY seq LIMIT (SELECT $2::bigint)))
    AND at <= now() - $1::bigint * interval '1 millisecond'
RETURNING 1
