-- Releases a held job. $1 id. Relies on the primary key.
WITH released AS (
    UPDATE orchestrix.job
    SET state = CASE WHEN waits_for > 0 THEN 'blocked' WHEN eligible_at > now() THEN 'scheduled' ELSE 'pending' END::orchestrix.job_state,
        eligible_at = CASE WHEN waits_for > 0 THEN eligible_at ELSE greatest(eligible_at, now()) END, updated_at = now()
    WHERE id = $1 AND state = 'created'
    RETURNING id, queue, job_type, tenant, rank, eligible_at, state
), batched AS (
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, id, queue, job_type, tenant, orchestrix.ring_position(tenant), ARRAY[id] FROM released WHERE state = 'pending'
), counted AS (
    INSERT INTO orchestrix.depth_delta (state, queues, counts)
    SELECT 'created'::orchestrix.job_state, ARRAY[queue], ARRAY[-1] FROM released UNION ALL SELECT state, ARRAY[queue], ARRAY[1] FROM released
)
SELECT state::text, queue, job_type, rank, eligible_at FROM released
