-- Changes the priority of unfinished jobs that this transaction has locked. $1 ids, $2 rank. Relies on the primary
-- key.
UPDATE orchestrix.job SET rank = $2 WHERE id = ANY ($1::uuid[]) RETURNING state::text, queue, job_type, rank, eligible_at
