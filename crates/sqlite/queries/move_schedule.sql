-- Writes where a schedule stands after it fired. ?1 name, ?2 counted from, ?3 the next nominal time, ?4 when that is due, ?5 last fired, ?6 the
-- version of the time-zone database, ?7 open jobs.
UPDATE schedule SET counted_from = ?2, next_nominal = ?3, next_fire_at = ?4, last_fired_at = ?5, tzdb = ?6, open_jobs = ?7 WHERE name = ?1
