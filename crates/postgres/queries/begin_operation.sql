-- Adds a running operation. $1 id, $2 action, $3 priority, $4 filter, $5 dry run, $6 now, $7 actor, $8 tenant.
INSERT INTO orchestrix.operation (id, action, priority, filter, dry_run, state, created_at, updated_at, actor, tenant)
VALUES ($1, $2, $3, $4, $5, 'running', $6, $6, $7, $8)
