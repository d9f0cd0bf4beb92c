-- Forgets entries of the audit, the lowest numbers first, which are the oldest. ?1 those of this time or earlier, ?2 how many.
DELETE FROM audit WHERE at <= ?1 AND seq IN (SELECT seq FROM audit ORDER BY seq LIMIT ?2)
