-- The latest operation.
SELECT id FROM operation ORDER BY id DESC LIMIT 1
