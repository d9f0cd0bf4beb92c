-- A page of schedules, by name. ?1 after this name, ?2 limit.
-- Uses the primary key.
SELECT name, created_at, updated_at, counted_from, next_nominal, next_fire_at, last_fired_at, tzdb, open_jobs,
       definition, paused
FROM schedule WHERE name > ?1 ORDER BY name LIMIT ?2
