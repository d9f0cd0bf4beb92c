-- Folds appended changes into the depths, in one order of queues so that two folders never wait for each other. $1 how many.
WITH taken AS (
    DELETE FROM orchestrix.depth_delta
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM orchestrix.depth_delta LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING queue, state, n
), folded AS (
    INSERT INTO orchestrix.depth AS d (queue, state, n)
    SELECT queue, state, sum(n) FROM taken GROUP BY queue, state HAVING sum(n) <> 0 ORDER BY queue, state
    ON CONFLICT (queue, state) DO UPDATE SET n = d.n + excluded.n
), emptied AS (
    -- Queues come and go; what was nothing before this fold and is not touched by it need not be kept.
    DELETE FROM orchestrix.depth d WHERE d.n = 0 AND NOT EXISTS (SELECT FROM taken t WHERE t.queue = d.queue AND t.state = d.state)
)
SELECT count(*) FROM taken
