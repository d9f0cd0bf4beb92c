-- Schedules whose next time was computed with another version of the time-zone database. ?1 our version, ?2 limit.
-- Relies on schedule_tzdb.
SELECT name FROM schedule WHERE tzdb < ?1 UNION ALL SELECT name FROM schedule WHERE tzdb > ?1 LIMIT ?2
