-- One schedule. $1 name, $2 tenant that must own it (null: any). Relies on the primary key.
SELECT s.name, s.definition::text, s.created_at, s.updated_at, s.counted_from, s.next_nominal, s.next_fire_at, s.last_fired_at, s.open_jobs, s.tzdb, s.paused, s.tenant
FROM orchestrix.schedule s WHERE s.name = $1 AND ($2::text IS NULL OR s.tenant = $2)
