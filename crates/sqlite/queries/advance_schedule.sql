-- Moves a schedule to its next time after it fired. ?1 name, ?2 counted from, ?3 next nominal time, ?4 next fire time,
-- ?5 last fired at, ?6 time-zone database version, ?7 open jobs. Uses the primary key.
UPDATE schedule
SET counted_from = ?2, next_nominal = ?3, next_fire_at = ?4, last_fired_at = ?5, tzdb = ?6, open_jobs = ?7
WHERE name = ?1
