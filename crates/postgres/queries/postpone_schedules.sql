-- Puts schedules off that cannot be fired now. $1 names, $2 milliseconds, $3 the version of the time-zone database: one that differs
-- has them looked at again. Relies on the primary key.
UPDATE orchestrix.schedule
SET next_fire_at = CASE WHEN next_fire_at IS NOT NULL THEN greatest(next_fire_at, now() + $2::bigint * interval '1 millisecond') END, tzdb = $3
WHERE name = ANY ($1::text[])
