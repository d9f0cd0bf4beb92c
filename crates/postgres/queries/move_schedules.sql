-- Writes where schedules stand after they fired. $1 names, $2 counted from, $3 the next nominal times, $4 when those are due, $5 last fired,
-- $6 open jobs, as texts of arrays, $7 the versions of the time-zone database. Relies on the primary key; why the items are wrapped as they are is said in examine.sql.
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
