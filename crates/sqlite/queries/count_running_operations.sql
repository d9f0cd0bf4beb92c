-- Counts running operations, all of them and those of one tenant (null: those without a tenant). ?1 tenant.
-- Relies on operation_turn.
SELECT count(*) AS running, count(*) FILTER (WHERE tenant IS ?1) AS of_tenant FROM operation WHERE state = 'running'
