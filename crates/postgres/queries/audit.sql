-- Entries of the audit that match, the newest first, of a bounded number looked at; and in a last row how far that was. $1 and $2 before which
-- time and number, $3 from which time, $4 how many to look at, $5 actor, $6 action, $7 target, $8 how many to give. Relies on audit_at.
WITH looked AS MATERIALIZED (
    SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome FROM orchestrix.audit
    WHERE (at, seq) < ($1::timestamptz, $2::bigint) AND at >= coalesce($3::timestamptz, '-infinity')
    ORDER BY at DESC, seq DESC LIMIT (SELECT $4::bigint)
), matched AS (
    SELECT * FROM looked
    WHERE ($5::text IS NULL OR actor = $5) AND ($6::text IS NULL OR action = $6) AND ($7::text IS NULL OR target = $7)
    ORDER BY at DESC, seq DESC LIMIT (SELECT $8::bigint)
)
SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome, NULL::bigint AS looked FROM matched
UNION ALL
SELECT (SELECT seq FROM looked ORDER BY at, seq LIMIT 1), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, count(*) FROM looked
