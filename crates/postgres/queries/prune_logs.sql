-- Forgets log lines that have no day of their own. $1 milliseconds, $2 how many.
DELETE FROM orchestrix.log_default WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM orchestrix.log_default WHERE recorded_at <= now() - $1::bigint * interval '1 millisecond' LIMIT $2))
RETURNING seq
