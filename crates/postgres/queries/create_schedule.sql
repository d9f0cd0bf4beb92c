-- Sets a schedule up, unless somebody was first. $1 name, $2 definition, $3 whether it is paused, $4 now, $5 the next nominal time, $6 when
-- that is due, $7 the version of the time-zone database.
INSERT INTO orchestrix.schedule (name, definition, paused, created_at, updated_at, counted_from, next_nominal, next_fire_at, open_jobs, tzdb)
VALUES ($1, $2::text::json, $3, $4, $4, $4, $5, $6, '{}', $7)
ON CONFLICT (name) DO NOTHING
RETURNING name
