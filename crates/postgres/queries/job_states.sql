-- The states of jobs. $1 ids. Relies on the primary keys.
SELECT id, state::text FROM orchestrix.jobs WHERE id = ANY ($1::uuid[])
