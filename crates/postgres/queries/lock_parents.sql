-- Keeps unfinished parents from finishing until this transaction is over, in the order of their ids, and marks that
-- somebody waits for them. The mark is on the parent's own row, so whoever ends it sees the mark even if it had to wait
-- for this lock. Those of other tenants are passed by, so that nobody can tell by waiting that they are there. $1 parents,
-- $2 tenants. Relies on the primary key.
WITH locked AS MATERIALIZED (
    SELECT id, tenant FROM orchestrix.job WHERE id = ANY ($1::uuid[]) AND tenant = ANY ($2::text[]) ORDER BY id FOR NO KEY UPDATE
), marked AS (
    UPDATE orchestrix.job SET has_dependents = true
    WHERE id = ANY (ARRAY(SELECT id FROM locked)) AND NOT has_dependents
)
SELECT id, tenant FROM locked
