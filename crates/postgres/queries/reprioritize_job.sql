-- Changes the priority of an unfinished job. $1 id, $2 rank. Relies on the primary key.
UPDATE orchestrix.job SET rank = $2 WHERE id = $1 RETURNING state::text, queue, job_type, rank, eligible_at
