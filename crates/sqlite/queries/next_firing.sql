-- When the next schedule is due. Relies on schedule_due.
SELECT next_fire_at FROM schedule WHERE next_fire_at IS NOT NULL ORDER BY next_fire_at LIMIT 1
