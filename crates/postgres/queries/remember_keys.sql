-- Writes the last state of a day's jobs to their idempotency keys, before the day is dropped. $1 day, $2 how many.
WITH leaving AS (
    SELECT h.tenant, h.job_type, h.options ->> 'idempotencyKey' AS key, h.id, h.state
    FROM orchestrix.history h
    JOIN orchestrix.idempotency k ON k.tenant = h.tenant AND k.job_type = h.job_type AND k.key = h.options ->> 'idempotencyKey'
    WHERE h.id >= orchestrix.id_floor($1::text::date::timestamp AT TIME ZONE 'UTC')
      AND h.id < orchestrix.id_floor(($1::text::date + 1)::timestamp AT TIME ZONE 'UTC')
      AND h.options ? 'idempotencyKey' AND k.job_id = h.id AND k.last_state IS DISTINCT FROM h.state
    LIMIT $2
)
UPDATE orchestrix.idempotency k SET last_state = l.state
FROM leaving l WHERE k.tenant = l.tenant AND k.job_type = l.job_type AND k.key = l.key
RETURNING k.job_id
