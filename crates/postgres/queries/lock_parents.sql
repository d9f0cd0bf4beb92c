-- Keeps unfinished parents from finishing until this transaction is over, in the order of their ids, and marks that
-- somebody waits for them. The mark is on the parent's own row, so whoever ends it sees the mark even if it had to wait
-- for this lock. $1 parents. Relies on the primary key.
WITH locked AS MATERIALIZED (
    SELECT id FROM orchestrix.job WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE
), marked AS (
    UPDATE orchestrix.job SET has_dependents = true
    WHERE id = ANY (ARRAY(SELECT id FROM locked)) AND NOT has_dependents
)
SELECT id FROM locked
