-- Locks unfinished jobs until this transaction ends, in the order of their ids. $1 ids. Relies on the primary key.
SELECT id, state::text, lease_counter, attempts, losses FROM orchestrix.job WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE
