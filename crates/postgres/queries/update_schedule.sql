-- Writes a changed schedule. $1 name, $2 definition, $3 paused, $4 updated at, $5 counted from, $6 next nominal time,
-- $7 when that is due, $8 time-zone database version. Relies on the primary key.
UPDATE orchestrix.schedule
SET definition = $2::text::json, paused = $3, updated_at = $4, counted_from = $5, next_nominal = $6, next_fire_at = $7, tzdb = $8
WHERE name = $1
