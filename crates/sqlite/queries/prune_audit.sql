-- Deletes audit entries, lowest numbers first, which are the oldest. ?1 up to this time, ?2 limit.
-- Uses the primary key.
DELETE FROM audit WHERE at <= ?1 AND seq IN (SELECT seq FROM audit ORDER BY seq LIMIT ?2)
