-- Writes to the idempotency keys of a day's cancelled jobs how they ended, before the day is dropped; a key whose job is
-- nowhere and that says nothing stands for a completed one. $1 day, $2 after which id, $3 how many. Gives the last id it
-- looked at. Relies on the primary keys.
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
