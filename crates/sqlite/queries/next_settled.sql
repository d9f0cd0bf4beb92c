-- The first finished job whose dependents are not all resolved.
-- Uses the primary key.
SELECT id, failed FROM settled ORDER BY id LIMIT 1
