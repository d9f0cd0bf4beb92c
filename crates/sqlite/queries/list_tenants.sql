-- A page of tenants that have settings, by name. ?1 after this name, ?2 limit.
-- Uses the primary key.
SELECT name, weight FROM tenant WHERE name > ?1 ORDER BY name LIMIT ?2
