-- Schedules whose next time another time-zone database gave. ?1 the version of ours, ?2 how many. Relies on schedule_tzdb.
SELECT name FROM schedule WHERE tzdb < ?1 UNION ALL SELECT name FROM schedule WHERE tzdb > ?1 LIMIT ?2
