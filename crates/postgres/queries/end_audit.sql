-- Records how it went, where nobody has yet. $1 number, $2 outcome.
UPDATE orchestrix.audit SET outcome = $2 WHERE seq = $1 AND outcome IS NULL RETURNING 1
