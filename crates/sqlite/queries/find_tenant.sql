-- The settings of a tenant. ?1 name.
-- Uses the primary key.
SELECT name, weight FROM tenant WHERE name = ?1
