-- The jobs that hold idempotency keys, and the states of those jobs. $1 tenants, $2 types, $3 keys.
-- Relies on the primary keys.
SELECT i.n, k.job_id, k.fingerprint,
       coalesce((SELECT j.state FROM orchestrix.jobs j WHERE j.id = k.job_id), k.last_state)::text AS state
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS i (tenant, job_type, key, n)
JOIN orchestrix.idempotency k ON k.tenant = i.tenant AND k.job_type = i.job_type AND k.key = i.key
