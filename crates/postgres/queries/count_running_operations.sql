-- Counts running operations: all, and those of one tenant (null: those without a tenant). $1 tenant.
-- Relies on operation_turn.
SELECT count(*) AS running, count(*) FILTER (WHERE tenant IS NOT DISTINCT FROM $1::text) AS of_tenant FROM orchestrix.operation WHERE state = 'running'
