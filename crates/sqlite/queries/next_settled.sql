-- A finished job whose dependents must be told.
SELECT id, failed FROM settled ORDER BY id LIMIT 1
