-- One schedule. ?1 name.
SELECT name, created_at, updated_at, counted_from, next_nominal, next_fire_at, last_fired_at, tzdb, open_jobs, definition, paused, tenant
FROM schedule WHERE name = ?1
