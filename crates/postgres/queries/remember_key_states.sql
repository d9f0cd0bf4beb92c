-- Notes on the idempotency keys of a day's cancelled jobs how those jobs ended, before the day is dropped. A key
-- without a job and without a note stands for a completed job. $1 day, $2 id to start after, $3 limit. Returns the
-- last id handled.
-- Relies on the primary keys.
WITH leaving AS MATERIALIZED (
    SELECT id, tenant, job_type, options ->> 'idempotencyKey' AS key FROM orchestrix.history
    WHERE id > $2 AND id >= orchestrix.id_floor($1::text::date::timestamp AT TIME ZONE 'UTC')
      AND id < orchestrix.id_floor(($1::text::date + 1)::timestamp AT TIME ZONE 'UTC')
      AND state = 'cancelled' AND options ? 'idempotencyKey'
    ORDER BY id LIMIT $3
), remembered AS (
    UPDATE orchestrix.idempotency SET last_state = 'cancelled'
    WHERE ctid = ANY (ARRAY(
        SELECT k.place FROM leaving l CROSS JOIN LATERAL (
            SELECT i.ctid AS place FROM orchestrix.idempotency i
            WHERE i.tenant = l.tenant AND i.job_type = l.job_type AND i.key = l.key AND i.job_id = l.id LIMIT 1) AS k))
)
SELECT id FROM leaving ORDER BY id DESC LIMIT 1
