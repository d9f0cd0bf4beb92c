-- Pauses a schedule without rewriting its definition. $1 name, $2 now. Relies on the primary key.
UPDATE orchestrix.schedule SET paused = true, updated_at = $2, next_nominal = NULL, next_fire_at = NULL WHERE name = $1
