-- The settings of a tenant. $1 name. Relies on the primary key.
SELECT name, weight FROM orchestrix.tenant WHERE name = $1
