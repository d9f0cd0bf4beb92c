-- The states of unfinished jobs. $1 ids. Relies on the primary key.
SELECT id, state::text FROM orchestrix.job WHERE id = ANY ($1::uuid[])
