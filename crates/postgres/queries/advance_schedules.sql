-- Writes the new position of schedules that fired. $1 names, $2 counted-from times, $3 next nominal times, $4 when
-- those are due, $5 last fired, $6 open jobs (array literals), $7 time-zone database versions.
-- Relies on the primary key. read_attempts.sql explains the form of the `item` CTE.
WITH item AS MATERIALIZED (
    SELECT i.*
    FROM unnest((SELECT $1::text[]), (SELECT $2::timestamptz[]), (SELECT $3::timestamptz[]), (SELECT $4::timestamptz[]),
                (SELECT $5::timestamptz[]), (SELECT $6::text[]), (SELECT $7::text[]))
        AS i (name, counted_from, next_nominal, next_fire_at, last_fired_at, open_jobs, tzdb)
    WHERE i.name COLLATE "C" BETWEEN '' AND '~'
)
UPDATE orchestrix.schedule AS s
SET counted_from = i.counted_from, next_nominal = i.next_nominal, next_fire_at = i.next_fire_at, last_fired_at = i.last_fired_at,
    open_jobs = i.open_jobs::uuid[], tzdb = i.tzdb
FROM item i WHERE s.name = i.name
