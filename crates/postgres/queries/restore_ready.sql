-- Adds a ready batch for pending jobs that no batch lists, of the jobs after an id. No statement of the store leaves
-- such a job behind; one that was changed by hand would never be claimed. $1 id, $2 jobs to examine. Relies on the
-- primary key of job and on ready_lane.
-- A batch is searched for among the hundred before the job. If more overlap, the job may get a second batch, which does
-- no harm.
-- Returns the last id examined, and how many jobs were added; no row at the end.
WITH examined AS MATERIALIZED (
    SELECT id, queue, job_type, tenant, rank, eligible_at, state FROM orchestrix.job WHERE id > $1 ORDER BY id LIMIT (SELECT $2::bigint)
), missing AS MATERIALIZED (
    SELECT e.* FROM examined e
    WHERE e.state = 'pending' AND NOT EXISTS (
        SELECT FROM (
            SELECT r.ids FROM orchestrix.ready r
            WHERE r.queue = e.queue AND r.job_type = e.job_type AND r.rank = e.rank AND r.ring = orchestrix.ring_position(e.tenant)
              AND r.eligible_at = e.eligible_at AND r.first_id <= e.id
            ORDER BY r.first_id DESC LIMIT 100) AS near
        WHERE e.id = ANY (near.ids))
), added AS (
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, id, queue, job_type, tenant, orchestrix.ring_position(tenant), ARRAY[id] FROM missing
)
SELECT id, (SELECT count(*) FROM missing) AS added FROM examined ORDER BY id DESC LIMIT 1
