-- The occurrences by misfire rule.
SELECT p.misfire, count(DISTINCT p.schedule), coalesce(sum(o.count), 0)::bigint,
       count(*) FILTER (WHERE o.outcome = 'fired' AND o.reason IS NULL), count(*) FILTER (WHERE o.outcome = 'fired' AND o.reason IS NOT NULL),
       coalesce(sum(o.count) FILTER (WHERE o.outcome = 'missed'), 0)::bigint
FROM audit.plan p LEFT JOIN orchestrix.occurrence o ON o.schedule = p.schedule
GROUP BY p.misfire ORDER BY p.misfire
