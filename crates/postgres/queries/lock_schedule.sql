-- One schedule, kept from others until the end of this transaction, and the time; of a schedule that is not there the time alone.
-- $1 name. Relies on the primary key.
WITH s AS MATERIALIZED (SELECT * FROM orchestrix.schedule WHERE name = $1 FOR UPDATE)
SELECT s.name, s.definition::text, s.created_at, s.updated_at, s.counted_from, s.next_nominal, s.next_fire_at, s.last_fired_at, s.open_jobs, s.tzdb, now()
FROM (SELECT) AS always LEFT JOIN s ON true
