-- Records the progress and checkpoint of a running job; nulls leave them unchanged. Returns no row if the token is not
-- current. $1 id, $2 counter, $3 secret, $4 progress, $5 checkpoint. Relies on the primary key.
UPDATE orchestrix.job SET progress = coalesce($4::text::jsonb, progress), checkpoint = coalesce($5::text, checkpoint)
WHERE id = $1 AND lease_counter = $2 AND lease_secret = $3 AND state IN ('dispatched', 'running')
RETURNING id
