-- The final states of finished jobs of some tenants. $1 ids, $2 tenants. Relies on the primary keys.
SELECT id, tenant, state::text FROM orchestrix.history WHERE id = ANY ($1::uuid[]) AND tenant = ANY ($2::text[])
UNION ALL
SELECT id, tenant, state::text FROM orchestrix.dead WHERE id = ANY ($1::uuid[]) AND tenant = ANY ($2::text[])
