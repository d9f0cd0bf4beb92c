-- Postpones a schedule that this program cannot fire. A paused one keeps its null: max(null, x) is null.
-- ?1 name, ?2 until, ?3 our version of the time-zone database, so that it is not selected again for another version.
-- Uses the primary key.
UPDATE schedule SET next_fire_at = max(next_fire_at, ?2), tzdb = ?3 WHERE name = ?1
