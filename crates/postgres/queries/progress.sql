-- Says how far a running job has come; nulls leave what was said. $1 id, $2 counter, $3 secret, $4 progress, $5 checkpoint.
UPDATE orchestrix.job SET progress = coalesce($4::text::jsonb, progress), checkpoint = coalesce($5::text, checkpoint)
WHERE id = $1 AND lease_counter = $2 AND lease_secret = $3 AND state IN ('dispatched', 'running')
RETURNING id
