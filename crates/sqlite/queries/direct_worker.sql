-- Says what a worker should do. ?1 name, ?2 directive.
UPDATE worker SET directive = ?2 WHERE name = ?1
