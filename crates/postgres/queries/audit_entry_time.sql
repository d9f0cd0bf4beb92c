-- The time of an audit entry, or of the nearest earlier one if that entry was pruned. $1 sequence number.
-- Relies on the primary key.
SELECT at FROM orchestrix.audit WHERE seq <= $1 ORDER BY seq DESC LIMIT 1
