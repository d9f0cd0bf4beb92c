-- The time of an entry of the audit, or of the one before it if it is forgotten. $1 number. Relies on the primary key.
SELECT at FROM orchestrix.audit WHERE seq <= $1 ORDER BY seq DESC LIMIT 1
