-- Schedules that are due, longest due first. ?1 now, ?2 limit. Relies on schedule_due.
SELECT name FROM schedule WHERE next_fire_at <= ?1 ORDER BY next_fire_at, name LIMIT ?2
