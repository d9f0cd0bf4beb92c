-- Creates or replaces a schedule. ?1 name, ?2 paused, ?3 created at, ?4 updated at, ?5 counted from, ?6 next nominal
-- time, ?7 next fire time, ?8 last fired at, ?9 time-zone database version, ?10 open jobs, ?11 definition. Uses the
-- primary key.
INSERT INTO schedule (name, paused, created_at, updated_at, counted_from, next_nominal, next_fire_at,
    last_fired_at, tzdb, open_jobs, definition)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, updated_at = excluded.updated_at,
    counted_from = excluded.counted_from, next_nominal = excluded.next_nominal, next_fire_at = excluded.next_fire_at,
    last_fired_at = excluded.last_fired_at, tzdb = excluded.tzdb, open_jobs = excluded.open_jobs,
    definition = excluded.definition
