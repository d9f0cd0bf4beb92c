-- A page of a tenant's schedules, by name. ?1 after this name, ?2 limit, ?3 tenant. Relies on schedule_tenant.
SELECT name, created_at, updated_at, counted_from, next_nominal, next_fire_at, last_fired_at, tzdb, open_jobs,
       definition, paused
FROM schedule WHERE tenant = ?3 AND name > ?1 ORDER BY name LIMIT ?2
