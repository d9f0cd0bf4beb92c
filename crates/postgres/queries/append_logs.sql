-- Appends lines to the log of a running job. $1 id, $2 counter, $3 secret, $4 times (null: now), $5 levels, $6
-- messages.
-- Returns no row if the token is not current. Relies on the primary key.
-- The share lock keeps the attempt from finishing in between. Calls for one job take turns by an advisory lock, so
-- that a reader that resumes after a line has seen every line before it. A row lock would not do: a handler may hold
-- the row in a transaction of its own.
WITH owned AS MATERIALIZED (
    SELECT id, attempts FROM orchestrix.job
    WHERE id = $1 AND lease_counter = $2 AND lease_secret = $3 AND state IN ('dispatched', 'running')
    FOR KEY SHARE
), turn AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtextextended(id::text, 0)) FROM owned
), added AS (
    INSERT INTO orchestrix.log (job_id, recorded_at, at, attempt, level, message)
    SELECT o.id, now(), coalesce(l.at, now()), o.attempts + 1, l.level, l.message
    FROM owned o, turn, unnest($4::timestamptz[], $5::text[], $6::text[]) WITH ORDINALITY AS l (at, level, message, n)
    ORDER BY l.n
)
SELECT id FROM owned
