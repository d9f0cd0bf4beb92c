-- Decides how many jobs a claim takes from each lane, so that the claim follows one order over all lanes.
-- $1 queues, $2 types, $3 ranks, $4 times, $5 ids (where the scan of each lane starts), $6 jobs wanted in all.
-- Reads about twice as many jobs as wanted, without locking them: an equal share from each lane that holds any. A lane
-- that fills its share may hold more, so the order over all lanes is known only up to the last job read from it. The
-- horizon is the first of these last jobs. Jobs after it are left to the next round: `cut_short` is then true.
-- Relies on job_claim.
WITH lane AS (
    SELECT l.*, first.rank IS NOT NULL AS filled
    FROM unnest($1::text[], $2::text[], $3::int2[], $4::timestamptz[], $5::uuid[]) WITH ORDINALITY
        AS l (queue, job_type, rank, eligible_at, id, n)
    CROSS JOIN LATERAL (
        SELECT j.rank FROM orchestrix.job j
        WHERE j.state = 'pending' AND j.queue = l.queue AND j.job_type = l.job_type
          AND (j.rank, j.eligible_at, j.id) > (l.rank, l.eligible_at, l.id)
          AND (j.expires_at IS NULL OR j.expires_at > now() OR j.started_at IS NOT NULL)
        ORDER BY j.rank, j.eligible_at, j.id LIMIT 1) AS first
    WHERE NOT EXISTS (SELECT FROM orchestrix.queue q WHERE q.name = l.queue AND q.paused)
), share AS (
    SELECT 1 + 2 * $6::integer / greatest(count(*), 1)::integer AS depth FROM lane
), candidate AS (
    SELECT l.n, c.rank, c.eligible_at, c.id, row_number() OVER (PARTITION BY l.n ORDER BY c.rank, c.eligible_at, c.id) AS nth
    FROM share, lane l
    CROSS JOIN LATERAL (
        SELECT j.rank, j.eligible_at, j.id FROM orchestrix.job j
        WHERE j.state = 'pending' AND j.queue = l.queue AND j.job_type = l.job_type
          AND (j.rank, j.eligible_at, j.id) > (l.rank, l.eligible_at, l.id)
          AND (j.expires_at IS NULL OR j.expires_at > now() OR j.started_at IS NOT NULL)
        ORDER BY j.rank, j.eligible_at, j.id LIMIT share.depth) AS c
), horizon AS (
    SELECT c.rank, c.eligible_at, c.id FROM candidate c, share WHERE c.nth = share.depth ORDER BY c.rank, c.eligible_at, c.id LIMIT 1
), chosen AS (
    SELECT c.n FROM candidate c
    WHERE NOT EXISTS (SELECT FROM horizon h WHERE (c.rank, c.eligible_at, c.id) > (h.rank, h.eligible_at, h.id))
    ORDER BY c.rank, c.eligible_at, c.id LIMIT $6::integer
)
SELECT n, count(*)::integer AS quota, EXISTS (SELECT FROM horizon) AS cut_short FROM chosen GROUP BY n
