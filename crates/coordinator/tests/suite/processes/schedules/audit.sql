-- The planned schedules, and the node and the epoch that wrote each occurrence.
CREATE TABLE audit.plan (
    schedule text COLLATE "C" PRIMARY KEY,
    -- The nominal times are the seconds since the Unix epoch that are `phase` past a multiple of `period`.
    period   integer NOT NULL,
    phase    integer NOT NULL,
    misfire  text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    put_at   timestamptz
);
CREATE TABLE audit.firing (
    schedule text COLLATE "C" NOT NULL,
    nominal  timestamptz NOT NULL,
    outcome  text NOT NULL,
    epoch    bigint NOT NULL,
    node     text NOT NULL DEFAULT current_setting('application_name'),
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON audit.firing (at);

-- VOLATILE, so that it reads the current epoch instead of the one at the start of the statement.
CREATE FUNCTION audit.note_firing() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
DECLARE now_in bigint := (SELECT epoch FROM orchestrix.leader);
BEGIN
    INSERT INTO audit.firing (schedule, nominal, outcome, epoch) SELECT schedule, nominal, outcome, now_in FROM written;
    RETURN NULL;
END $$;
CREATE TRIGGER note_firing AFTER INSERT ON orchestrix.occurrence
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION audit.note_firing();
