-- Whose things are: each tenant's are found by an index, and operations take turns.

-- The tenant of a schedule is that of the jobs it creates. Computed by the server, so that it is right whichever version of the program writes the
-- definition; a definition that says none is nobody's. Adding it writes the table anew once.
ALTER TABLE orchestrix.schedule ADD COLUMN tenant text COLLATE "C" GENERATED ALWAYS AS (definition #>> '{job,tenant}') STORED;
CREATE INDEX schedule_tenant ON orchestrix.schedule (tenant, name);

-- Whose last turn is the longest ago comes next.
CREATE INDEX operation_turn ON orchestrix.operation (updated_at, id) WHERE state = 'running';
DROP INDEX orchestrix.operation_open;
CREATE INDEX operation_tenant ON orchestrix.operation (tenant, id) WHERE tenant IS NOT NULL;

-- The audit is read by time, of all and of one tenant.
CREATE INDEX audit_at ON orchestrix.audit (at, seq);
CREATE INDEX audit_tenant ON orchestrix.audit (tenant, at, seq) WHERE tenant IS NOT NULL;
