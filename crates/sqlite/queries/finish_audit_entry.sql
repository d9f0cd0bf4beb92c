-- Records the outcome of an audited action, once. ?1 number, ?2 outcome.
-- Uses the primary key.
UPDATE audit SET outcome = ?2 WHERE seq = ?1 AND outcome IS NULL
