-- Forgets lines of a schedule's ledger. $1 schedule, $2 how many. Relies on the primary key.
DELETE FROM orchestrix.occurrence WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM orchestrix.occurrence WHERE schedule = $1 LIMIT $2))
RETURNING 1
