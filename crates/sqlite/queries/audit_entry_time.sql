-- The time of an audit entry, or of the entry before it if that one was pruned. ?1 number.
-- Uses the primary key.
SELECT at FROM audit WHERE seq <= ?1 ORDER BY seq DESC LIMIT 1
