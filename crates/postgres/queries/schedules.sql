-- A page of schedules, and how many were found; with large payloads it has fewer, of about 32 MiB. $1 after which name, $2 how many. Relies
-- on the primary key.
SELECT s.name, s.definition::text, s.created_at, s.updated_at, s.counted_from, s.next_nominal, s.next_fire_at, s.last_fired_at, s.open_jobs, s.tzdb, s.paused, s.found
FROM (
    SELECT *, sum(pg_column_size(definition)) OVER (ORDER BY name) AS size, count(*) OVER () AS found
    FROM (SELECT * FROM orchestrix.schedule WHERE name > $1 ORDER BY name LIMIT $2) AS page
) AS s
WHERE s.size - pg_column_size(s.definition) < 33554432
ORDER BY s.name
