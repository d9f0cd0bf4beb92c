-- Puts off a schedule that this program cannot fire. ?1 name, ?2 until when, ?3 the version of the time-zone database: one that differs has it
-- looked at again. The greater of null and anything is null.
UPDATE schedule SET next_fire_at = max(next_fire_at, ?2), tzdb = ?3 WHERE name = ?1
