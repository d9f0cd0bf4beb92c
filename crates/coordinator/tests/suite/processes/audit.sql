-- Records every committed write that only a leader makes: the node of the connection, the epoch and the time. A
-- rolled-back write leaves no line, because triggers write the lines in the same transaction.
CREATE SCHEMA audit;
CREATE TABLE audit.takeover (epoch bigint PRIMARY KEY, node text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE audit.line (
    kind    text NOT NULL,
    job     uuid NOT NULL,
    -- The counter of a reaped lease, or the due time of a job.
    counter integer,
    due     timestamptz,
    epoch   bigint NOT NULL,
    node    text NOT NULL DEFAULT current_setting('application_name'),
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON audit.line (job, kind);

CREATE FUNCTION audit.note_takeover() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit.takeover (epoch, node) VALUES (NEW.epoch, NEW.node);
    RETURN NULL;
END $$;
CREATE TRIGGER note_takeover AFTER UPDATE ON orchestrix.leader_term
    FOR EACH ROW WHEN (NEW.epoch <> OLD.epoch) EXECUTE FUNCTION audit.note_takeover();

-- VOLATILE, so that it reads the current epoch instead of the one at the start of the statement.
CREATE FUNCTION audit.note_step() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
DECLARE now_in bigint := (SELECT epoch FROM orchestrix.leader);
BEGIN
    IF NEW.state IN ('scheduled', 'retrying') THEN
        INSERT INTO audit.line (kind, job, due, epoch) VALUES ('due', NEW.id, NEW.eligible_at, now_in);
    ELSIF TG_OP = 'INSERT' OR NEW.state <> 'pending' THEN
        NULL;
    ELSIF OLD.state IN ('scheduled', 'retrying') THEN
        INSERT INTO audit.line (kind, job, due, epoch) VALUES ('promoted', NEW.id, OLD.eligible_at, now_in);
    ELSIF OLD.state = 'running' THEN
        INSERT INTO audit.line (kind, job, counter, epoch) VALUES ('reaped', NEW.id, OLD.lease_counter, now_in);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER note_recorded AFTER INSERT ON orchestrix.job FOR EACH ROW EXECUTE FUNCTION audit.note_step();
CREATE TRIGGER note_moved AFTER UPDATE ON orchestrix.job
    FOR EACH ROW WHEN (NEW.state <> OLD.state) EXECUTE FUNCTION audit.note_step();
