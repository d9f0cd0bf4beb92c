-- A page of schedules. ?1 after which name, ?2 how many.
SELECT name, created_at, updated_at, counted_from, next_nominal, next_fire_at, last_fired_at, tzdb, open_jobs, definition, paused
FROM schedule WHERE name > ?1 ORDER BY name LIMIT ?2
