-- Locks due schedules, the longest due first, then schedules whose next time was computed with another time-zone
-- database. Skips rows that are locked. $1 limit, $2 time-zone database version, $3 bytes of definitions after which
-- no further schedule is returned. Relies on schedule_due and schedule_tzdb. promote_jobs.sql explains why the limit
-- is a sub-select.
WITH due AS MATERIALIZED (
    SELECT * FROM orchestrix.schedule
    WHERE next_fire_at IS NOT NULL AND next_fire_at <= now()
    ORDER BY next_fire_at, name LIMIT (SELECT $1::bigint)
    FOR UPDATE SKIP LOCKED
), older AS MATERIALIZED (
    SELECT * FROM orchestrix.schedule WHERE tzdb < $2 ORDER BY tzdb
    LIMIT (SELECT $1::bigint - count(*) FROM due)
    FOR UPDATE SKIP LOCKED
), newer AS MATERIALIZED (
    SELECT * FROM orchestrix.schedule WHERE tzdb > $2 ORDER BY tzdb
    LIMIT (SELECT $1::bigint - (SELECT count(*) FROM due) - (SELECT count(*) FROM older))
    FOR UPDATE SKIP LOCKED
)
SELECT s.name, s.definition::text, s.created_at, s.updated_at, s.counted_from, s.next_nominal, s.next_fire_at, s.last_fired_at, s.open_jobs, s.tzdb, s.paused, now() AS now
FROM (
    SELECT *, sum(pg_column_size(definition)) OVER (ROWS UNBOUNDED PRECEDING) AS size
    FROM (SELECT * FROM due UNION ALL SELECT * FROM older UNION ALL SELECT * FROM newer) AS found
) AS s
WHERE s.size - pg_column_size(s.definition) < $3::bigint
