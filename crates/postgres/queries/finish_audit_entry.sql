-- Sets the outcome of an audit entry that has none. $1 sequence number, $2 outcome. Relies on the primary key.
UPDATE orchestrix.audit SET outcome = $2 WHERE seq = $1 AND outcome IS NULL RETURNING 1
