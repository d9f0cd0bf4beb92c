-- $1 ids, $2 secret. Uses the primary key.
WITH gone AS (
    DELETE FROM job WHERE id = ANY ($1::uuid[]) AND lease_secret = $2::uuid
    RETURNING id, eligible_at, lease_secret, rank, queue, payload
)
INSERT INTO history (id, eligible_at, finished_at, lease_secret, rank, state, queue, payload)
SELECT id, eligible_at, now(), lease_secret, rank, 2, queue, payload FROM gone
RETURNING id
