-- The same as audit.sql, of what was done by those who are bound to a tenant, $9. Relies on audit_tenant.
WITH looked AS MATERIALIZED (
    SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome FROM orchestrix.audit
    WHERE tenant = $9 AND (at, seq) < ($1::timestamptz, $2::bigint) AND at >= coalesce($3::timestamptz, '-infinity')
    ORDER BY at DESC, seq DESC LIMIT (SELECT $4::bigint)
), matched AS (
    SELECT * FROM looked
    WHERE ($5::text IS NULL OR actor = $5) AND ($6::text IS NULL OR action = $6) AND ($7::text IS NULL OR target = $7)
    ORDER BY at DESC, seq DESC LIMIT (SELECT $8::bigint)
)
SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome, NULL::bigint AS looked FROM matched
UNION ALL
SELECT (SELECT seq FROM looked ORDER BY at, seq LIMIT 1), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, count(*) FROM looked
