-- Entries of the audit that match, the newest first, of a bounded number looked at; and in a last row how far that was. $1 before which
-- number, $2 how many to look at, $3 actor, $4 tenant, $5 action, $6 target, $7 from, $8 to, $9 how many to give. Relies on the primary key.
WITH looked AS MATERIALIZED (
    SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome FROM orchestrix.audit WHERE seq < $1 ORDER BY seq DESC LIMIT $2
), matched AS (
    SELECT * FROM looked
    WHERE ($3::text IS NULL OR actor = $3) AND ($4::text IS NULL OR tenant = $4) AND ($5::text IS NULL OR action = $5)
      AND ($6::text IS NULL OR target = $6) AND ($7::timestamptz IS NULL OR at >= $7) AND ($8::timestamptz IS NULL OR at < $8)
    ORDER BY seq DESC LIMIT $9
)
SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome, NULL::bigint AS looked FROM matched
UNION ALL
SELECT (SELECT min(seq) FROM looked), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, count(*) FROM looked
