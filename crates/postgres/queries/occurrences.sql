-- A page of a ledger, the newest nominal time first. $1 schedule, $2 before which time (null: from the newest), $3 how many. Relies on the
-- primary key.
SELECT o.schedule, o.nominal, o.until, o.count, o.outcome, o.reason, o.job, o.at
FROM orchestrix.occurrence o WHERE o.schedule = $1 AND o.nominal < coalesce($2::timestamptz, 'infinity')
ORDER BY o.nominal DESC LIMIT $3
