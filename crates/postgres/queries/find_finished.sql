-- The terminal states of jobs. $1 ids. Relies on the primary keys.
SELECT id, state::text FROM orchestrix.history WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT id, state::text FROM orchestrix.dead WHERE id = ANY ($1::uuid[])
