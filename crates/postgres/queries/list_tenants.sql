-- A page of tenants that have settings. $1 name to start after, $2 limit. Relies on the primary key.
SELECT name, weight FROM orchestrix.tenant WHERE name > $1 ORDER BY name LIMIT $2
