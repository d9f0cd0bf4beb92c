-- Whose things are: each tenant's are found by an index, and operations take turns.

-- The tenant of a schedule is that of the jobs it creates; a definition that says none, or is none, is nobody's.
ALTER TABLE schedule ADD COLUMN tenant TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(definition) THEN definition ->> '$.job.tenant' END) VIRTUAL;
CREATE INDEX schedule_tenant ON schedule (tenant, name);

-- Whose last turn is the longest ago comes next.
CREATE INDEX operation_turn ON operation (updated_at, id) WHERE state = 'running';
DROP INDEX operation_open;
CREATE INDEX operation_tenant ON operation (tenant, id) WHERE tenant IS NOT NULL;

-- The audit is read by time, of all and of one tenant.
CREATE INDEX audit_at ON audit (at, seq);
CREATE INDEX audit_tenant ON audit (tenant, at, seq) WHERE tenant IS NOT NULL;
