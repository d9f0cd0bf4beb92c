-- Sets a worker's directive. ?1 name, ?2 directive.
-- Uses the primary key.
UPDATE worker SET directive = ?2 WHERE name = ?1
