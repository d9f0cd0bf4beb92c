-- Tells children that parents have finished, each pair once: only the call that turns an edge counts it. A child that
-- is gone is passed over. $1 children, $2 parents (sorted by child), $3 whether the child is to be held.
WITH turned AS (
    UPDATE orchestrix.dependency AS d SET met = true
    FROM unnest((SELECT $1::uuid[]), (SELECT $2::uuid[]), (SELECT $3::boolean[])) AS e (child, parent, hold)
    WHERE d.child = e.child AND d.parent = e.parent AND NOT d.met
    RETURNING d.child, e.hold
), child AS (
    SELECT child AS id, count(*)::integer AS n, bool_or(hold) AS hold FROM turned GROUP BY child
), locked AS MATERIALIZED (
    SELECT j.id, j.state FROM orchestrix.job j WHERE j.id IN (SELECT id FROM child) ORDER BY j.id FOR NO KEY UPDATE
), moved AS (
    UPDATE orchestrix.job AS j
    SET waits_for = j.waits_for - c.n,
        state = CASE WHEN j.state = 'created' OR c.hold THEN 'created'
                     WHEN j.waits_for > c.n THEN 'blocked'
                     WHEN j.eligible_at > now() THEN 'scheduled'
                     ELSE 'pending' END::orchestrix.job_state,
        eligible_at = CASE WHEN j.state = 'created' OR c.hold OR j.waits_for > c.n THEN j.eligible_at ELSE greatest(j.eligible_at, now()) END,
        updated_at = now()
    FROM child c, locked l
    WHERE j.id = c.id AND l.id = c.id AND j.state IN ('created', 'blocked')
    RETURNING j.queue, j.state, l.state AS was
), counted AS (
    INSERT INTO orchestrix.depth_delta
    SELECT queue, was, -count(*) FROM moved GROUP BY queue, was
    UNION ALL SELECT queue, state, count(*) FROM moved GROUP BY queue, state
)
SELECT queue, state::text FROM moved
