-- The state, lease counter and counts of one job. $1 id. Relies on the primary keys.
SELECT state::text, lease_counter, attempts, losses FROM orchestrix.jobs WHERE id = $1
