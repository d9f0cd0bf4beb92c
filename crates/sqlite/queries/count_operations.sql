-- How many operations run, in all and of a tenant (null: of those who are bound to none). ?1 tenant. Relies on operation_turn.
SELECT count(*), count(*) FILTER (WHERE tenant IS ?1) FROM operation WHERE state = 'running'
