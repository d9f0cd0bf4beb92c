-- Deletes log lines past their retention from the default partition. $1 milliseconds, $2 limit.
DELETE FROM orchestrix.log_default WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM orchestrix.log_default WHERE recorded_at <= now() - $1::bigint * interval '1 millisecond' LIMIT $2))
RETURNING seq
