-- Schedules that are due, the longest due first, and then those whose next time another time-zone database gave; kept from others until
-- the end of this transaction, without waiting for those that somebody has. $1 how many, $2 the version of the time-zone database.
-- With large payloads there are fewer, of about $3 bytes. Relies on schedule_due and schedule_tzdb; why the limit comes through a sub-select is said in promote.sql.
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
SELECT s.name, s.definition::text, s.created_at, s.updated_at, s.counted_from, s.next_nominal, s.next_fire_at, s.last_fired_at, s.open_jobs, s.tzdb, s.paused, now()
FROM (
    SELECT *, sum(pg_column_size(definition)) OVER (ROWS UNBOUNDED PRECEDING) AS size
    FROM (SELECT * FROM due UNION ALL SELECT * FROM older UNION ALL SELECT * FROM newer) AS found
) AS s
WHERE s.size - pg_column_size(s.definition) < $3::bigint
