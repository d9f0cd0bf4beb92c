-- The id of the latest operation.
-- Uses the primary key.
SELECT id FROM operation ORDER BY id DESC LIMIT 1
