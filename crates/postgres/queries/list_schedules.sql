-- A page of schedules. $1 name to start after, $2 limit. Relies on the primary key.
-- `found` says how many rows the page would have; definitions beyond about 32 MiB are left for the next page.
SELECT s.name, s.definition::text, s.created_at, s.updated_at, s.counted_from, s.next_nominal, s.next_fire_at, s.last_fired_at, s.open_jobs, s.tzdb, s.paused, s.found
FROM (
    SELECT *, sum(pg_column_size(definition)) OVER (ORDER BY name) AS size, count(*) OVER () AS found
    FROM (SELECT * FROM orchestrix.schedule WHERE name > $1 ORDER BY name LIMIT $2) AS page
) AS s
WHERE s.size - pg_column_size(s.definition) < 33554432
ORDER BY s.name
