-- Schedules, and what became of their times.

CREATE TABLE orchestrix.schedule (
    name          text COLLATE "C" PRIMARY KEY,
    -- What was asked for. Firing never writes it, so a large payload in it is not copied each time.
    definition    json NOT NULL,
    paused        boolean NOT NULL,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    -- Nominal times up to this one are dealt with.
    counted_from  timestamptz NOT NULL,
    next_nominal  timestamptz,
    -- The nominal time and its jitter.
    next_fire_at  timestamptz,
    last_fired_at timestamptz,
    -- Its latest jobs that may be unfinished, oldest first; kept where overlaps matter.
    open_jobs     uuid[] NOT NULL,
    -- The version of the time-zone database that the next time was computed by.
    tzdb          text COLLATE "C" NOT NULL,
    CONSTRAINT next_shape CHECK ((next_nominal IS NULL) = (next_fire_at IS NULL) AND next_fire_at >= next_nominal),
    CONSTRAINT paused_shape CHECK (NOT paused OR next_fire_at IS NULL)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- As large as it looks: whoever reads many counts their sizes, without reading them.
ALTER TABLE orchestrix.schedule ALTER definition SET STORAGE EXTERNAL;

CREATE INDEX schedule_due ON orchestrix.schedule (next_fire_at, name) WHERE next_fire_at IS NOT NULL;
CREATE INDEX schedule_tzdb ON orchestrix.schedule (tzdb);

-- The ledger: one line for every nominal time, or for several that were passed over together. Whoever writes a line holds the row of
-- its schedule; the key is what makes a second job for one time impossible. No foreign key: a ledger may be long, and is deleted in
-- parts before its schedule.
CREATE TABLE orchestrix.occurrence (
    schedule text COLLATE "C" NOT NULL,
    nominal  timestamptz NOT NULL,
    -- The last of them, and how many there are.
    until    timestamptz NOT NULL,
    count    bigint NOT NULL,
    outcome  text NOT NULL,
    reason   text,
    job      uuid,
    at       timestamptz NOT NULL,
    PRIMARY KEY (schedule, nominal),
    -- No more than this: a line that a backfill cut short is counted by the cadence of that day.
    CONSTRAINT span_shape CHECK (count >= 1 AND until >= nominal),
    CONSTRAINT outcome_shape CHECK (
        CASE outcome WHEN 'fired' THEN job IS NOT NULL AND count = 1 AND until = nominal AND (reason IS NULL OR reason IN ('catch_up', 'backfill', 'trigger'))
                     WHEN 'skipped' THEN job IS NULL AND reason IS NOT NULL AND reason IN ('overlap', 'paused')
                     WHEN 'missed' THEN job IS NULL AND reason IS NOT NULL AND reason = 'late'
                     ELSE false END)
);
CREATE INDEX occurrence_until ON orchestrix.occurrence (until);
