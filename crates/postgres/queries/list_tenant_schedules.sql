-- A page of one tenant's schedules, as list_schedules.sql. $1 name to start after, $2 limit, $3 tenant.
-- Relies on schedule_tenant. promote_jobs.sql explains why the limit is a sub-select.
SELECT s.name, s.definition::text, s.created_at, s.updated_at, s.counted_from, s.next_nominal, s.next_fire_at, s.last_fired_at, s.open_jobs, s.tzdb, s.paused, s.found
FROM (
    SELECT *, sum(pg_column_size(definition)) OVER (ORDER BY name) AS size, count(*) OVER () AS found
    FROM (SELECT * FROM orchestrix.schedule WHERE tenant = $3 AND name > $1 ORDER BY name LIMIT (SELECT $2::bigint)) AS page
) AS s
WHERE s.size - pg_column_size(s.definition) < 33554432
ORDER BY s.name
