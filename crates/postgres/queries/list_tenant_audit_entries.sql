-- A page of matching audit entries of one tenant, the newest first, out of a bounded number of entries scanned. A
-- last row holds the sequence number of the last entry scanned and how many were. $1 time and $2 sequence number to
-- start before, $3 earliest time, $4 scan limit, $5 actor, $6 action, $7 target, $8 limit, $9 tenant. Relies on
-- audit_tenant.
WITH scanned AS MATERIALIZED (
    SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome FROM orchestrix.audit
    WHERE tenant = $9 AND (at, seq) < ($1::timestamptz, $2::bigint) AND at >= coalesce($3::timestamptz, '-infinity')
    ORDER BY at DESC, seq DESC LIMIT (SELECT $4::bigint)
), matched AS (
    SELECT * FROM scanned
    WHERE ($5::text IS NULL OR actor = $5) AND ($6::text IS NULL OR action = $6) AND ($7::text IS NULL OR target = $7)
    ORDER BY at DESC, seq DESC LIMIT (SELECT $8::bigint)
)
SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome, NULL::bigint AS scanned FROM matched
UNION ALL
SELECT (SELECT seq FROM scanned ORDER BY at, seq LIMIT 1), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, count(*) FROM scanned
