-- A page of a schedule's occurrences, the newest nominal time first. $1 schedule, $2 time to start before (null:
-- newest), $3 limit, $4 tenant that must own the schedule (null: any). Relies on the primary keys.
SELECT o.schedule, o.nominal, o.until, o.count, o.outcome, o.reason, o.job, o.at
FROM orchestrix.occurrence o WHERE o.schedule = $1 AND o.nominal < coalesce($2::timestamptz, 'infinity')
  AND EXISTS (SELECT FROM orchestrix.schedule s WHERE s.name = $1 AND ($4::text IS NULL OR s.tenant = $4))
ORDER BY o.nominal DESC LIMIT $3
