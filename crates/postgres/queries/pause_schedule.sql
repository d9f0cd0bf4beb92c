-- Stops a schedule whose definition stays as it is. $1 name, $2 when. Relies on the primary key.
UPDATE orchestrix.schedule SET paused = true, updated_at = $2, next_nominal = NULL, next_fire_at = NULL WHERE name = $1
