-- Folds appended depth changes into the depths. $1 limit.
-- Rows are written in the order of queues, so that two folds never deadlock.
WITH taken AS (
    DELETE FROM orchestrix.depth_delta
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM orchestrix.depth_delta LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING state, queues, counts
), change AS MATERIALIZED (
    SELECT c.queue, t.state, sum(c.n) AS n FROM taken t CROSS JOIN unnest(t.queues, t.counts) AS c (queue, n) GROUP BY c.queue, t.state
), folded AS (
    INSERT INTO orchestrix.depth AS d (queue, state, n)
    SELECT queue, state, n FROM change WHERE n <> 0 ORDER BY queue, state
    ON CONFLICT (queue, state) DO UPDATE SET n = d.n + excluded.n
), emptied AS (
    -- Removes counts that were zero before this fold and that it does not touch: queues come and go.
    DELETE FROM orchestrix.depth d WHERE d.n = 0 AND NOT EXISTS (SELECT FROM change c WHERE c.queue = d.queue AND c.state = d.state)
)
SELECT count(*) AS folded FROM taken
