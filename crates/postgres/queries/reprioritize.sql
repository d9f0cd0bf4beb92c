-- Changes how urgent an unfinished job is. $1 id, $2 rank. Relies on the primary key.
UPDATE orchestrix.job SET rank = $2 WHERE id = $1 RETURNING state::text, queue, job_type, rank, eligible_at
