-- Milliseconds until the next schedule is due; 0 if a next time must be recomputed with this time-zone database.
-- $1 time-zone database version. Relies on schedule_due and schedule_tzdb.
SELECT CASE WHEN EXISTS (SELECT FROM orchestrix.schedule WHERE tzdb < $1) OR EXISTS (SELECT FROM orchestrix.schedule WHERE tzdb > $1) THEN 0
            ELSE (SELECT (extract(epoch FROM next_fire_at - now()) * 1000)::float8 FROM orchestrix.schedule
                  WHERE next_fire_at IS NOT NULL ORDER BY next_fire_at LIMIT 1) END AS in_ms
