-- How many operations run, in all and of a tenant (null: of those who are bound to none). $1 tenant. Relies on operation_turn.
SELECT count(*), count(*) FILTER (WHERE tenant IS NOT DISTINCT FROM $1::text) FROM orchestrix.operation WHERE state = 'running'
