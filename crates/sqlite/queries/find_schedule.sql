-- One schedule, provided that it is in the tenant scope. ?1 name, ?2 tenant (null: any). Uses the primary key.
SELECT name, created_at, updated_at, counted_from, next_nominal, next_fire_at, last_fired_at, tzdb, open_jobs,
       definition, paused, tenant
FROM schedule WHERE name = ?1 AND (?2 IS NULL OR tenant = ?2)
