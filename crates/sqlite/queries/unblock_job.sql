-- Writes what a held or blocked job still waits for. ?1 id, ?2 state, ?3 unfinished parents, ?4 eligible at,
-- ?5 updated at (null: unchanged). Uses the primary key.
UPDATE job SET state = ?2, waits_for = ?3, eligible_at = ?4, updated_at = coalesce(?5, updated_at)
WHERE id = ?1 AND state IN ('created', 'blocked')
