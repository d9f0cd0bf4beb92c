-- Locks unfinished parents, in the order of their ids, so that none finishes before this transaction ends; and marks
-- that they have dependents. $1 parents, $2 tenants. Relies on the primary key.
-- The mark is on the parent's own row: a transaction that finishes the parent sees it even after waiting for this
-- lock.
-- Parents of other tenants are skipped, so that a client cannot detect them by how long a call waits.
WITH locked AS MATERIALIZED (
    SELECT id, tenant FROM orchestrix.job WHERE id = ANY ($1::uuid[]) AND tenant = ANY ($2::text[]) ORDER BY id FOR NO KEY UPDATE
), marked AS (
    UPDATE orchestrix.job SET has_dependents = true
    WHERE id = ANY (ARRAY(SELECT id FROM locked)) AND NOT has_dependents
)
SELECT id, tenant FROM locked
