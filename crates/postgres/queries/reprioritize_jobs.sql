-- Changes the priority of unfinished jobs that this transaction has locked. $1 ids, $2 rank. Relies on the primary
-- key. Pending jobs get new ready batches: a claim ignores them in the old ones, whose rank is no longer theirs.
WITH moved AS (
    UPDATE orchestrix.job SET rank = $2 WHERE id = ANY ($1::uuid[]) RETURNING id, state, queue, job_type, tenant, rank, eligible_at
), batched AS (
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, (array_agg(id ORDER BY id))[1], queue, job_type, tenant, orchestrix.ring_position(tenant), array_agg(id ORDER BY id)
    FROM (SELECT m.*, (row_number() OVER (PARTITION BY queue, job_type, tenant, rank, eligible_at ORDER BY id) - 1) / 64 AS part
          FROM moved m WHERE m.state = 'pending') AS m
    GROUP BY queue, job_type, tenant, rank, eligible_at, part
)
SELECT state::text, queue, job_type, rank, eligible_at FROM moved
