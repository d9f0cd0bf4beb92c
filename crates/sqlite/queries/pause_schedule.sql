-- Pauses a schedule without touching its definition. ?1 name, ?2 now.
-- Uses the primary key.
UPDATE schedule SET paused = 1, updated_at = ?2, next_nominal = NULL, next_fire_at = NULL WHERE name = ?1
