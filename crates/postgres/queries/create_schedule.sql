-- Adds a schedule. Returns no row if the name exists. $1 name, $2 definition, $3 paused, $4 now, $5 next nominal time,
-- $6 when that is due, $7 time-zone database version. Relies on the primary key.
INSERT INTO orchestrix.schedule (name, definition, paused, created_at, updated_at, counted_from, next_nominal, next_fire_at, open_jobs, tzdb)
VALUES ($1, $2::text::json, $3, $4, $4, $4, $5, $6, '{}', $7)
ON CONFLICT (name) DO NOTHING
RETURNING name
