-- Writes a schedule whose definition changed. $1 name, $2 definition, $3 whether it is paused, $4 updated, $5 counted from, $6 the next
-- nominal time, $7 when that is due, $8 the version of the time-zone database. Relies on the primary key.
UPDATE orchestrix.schedule
SET definition = $2::text::json, paused = $3, updated_at = $4, counted_from = $5, next_nominal = $6, next_fire_at = $7, tzdb = $8
WHERE name = $1
