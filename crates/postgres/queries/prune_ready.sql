-- Deletes ready batches that list no pending job any more, of those after a position. A claim deletes the batches it
-- visits; this finds the ones that no worker asks for. $1 queue, $2 job type, $3 rank, $4 ring position, $5 time and $6 id: the
-- last batch examined before; $7 batches to examine. Relies on ready_lane and the primary key of job.
-- Returns the last batch examined, and how many were deleted; no row at the end.
WITH examined AS MATERIALIZED (
    SELECT ctid AS place, queue, job_type, rank, ring, eligible_at, first_id, ids FROM orchestrix.ready
    WHERE (queue, job_type, rank, ring, eligible_at, first_id) > ($1::text, $2::text, $3::int2, $4::int8, $5::timestamptz, $6::uuid)
    ORDER BY queue, job_type, rank, ring, eligible_at, first_id LIMIT (SELECT $7::bigint)
), removed AS (
    DELETE FROM orchestrix.ready
    WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM orchestrix.ready r
        WHERE r.ctid = ANY (ARRAY(
            SELECT e.place FROM examined e
            WHERE NOT EXISTS (
                SELECT FROM orchestrix.job j
                WHERE j.id = ANY (e.ids) AND j.state = 'pending' AND j.rank = e.rank AND j.eligible_at = e.eligible_at)))
        FOR UPDATE SKIP LOCKED))
    RETURNING 1
)
SELECT queue, job_type, rank, ring, eligible_at, first_id, (SELECT count(*) FROM removed) AS removed FROM examined
ORDER BY queue DESC, job_type DESC, rank DESC, ring DESC, eligible_at DESC, first_id DESC LIMIT 1
