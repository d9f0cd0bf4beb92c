-- Postpones schedules that cannot fire now. $1 names, $2 milliseconds, $3 time-zone database version.
-- Setting the version keeps lock_due_schedules.sql from returning them again at once. Relies on the primary key.
UPDATE orchestrix.schedule
SET next_fire_at = CASE WHEN next_fire_at IS NOT NULL THEN greatest(next_fire_at, now() + $2::bigint * interval '1 millisecond') END, tzdb = $3
WHERE name = ANY ($1::text[])
