-- Changes the priority of an unfinished job. $1 id, $2 rank. Relies on the primary key.
-- A pending job gets a new ready batch: a claim ignores it in the old one, whose rank is no longer its own.
WITH moved AS (
    UPDATE orchestrix.job SET rank = $2 WHERE id = $1 RETURNING id, state, queue, job_type, tenant, rank, eligible_at
), batched AS (
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, id, queue, job_type, tenant, orchestrix.ring_position(tenant), ARRAY[id] FROM moved WHERE state = 'pending'
)
SELECT state::text, queue, job_type, rank, eligible_at FROM moved
