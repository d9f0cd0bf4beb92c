-- Schedules, and what became of their times.

CREATE TABLE schedule (
    name          TEXT NOT NULL PRIMARY KEY,
    paused        INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    -- Nominal times up to this one are dealt with.
    counted_from  INTEGER NOT NULL,
    next_nominal  INTEGER,
    -- The nominal time and its jitter.
    next_fire_at  INTEGER,
    last_fired_at INTEGER,
    -- The version of the time-zone database that the next time was computed by.
    tzdb          TEXT NOT NULL,
    -- Its latest jobs that may be unfinished, oldest first, 16 bytes each; kept where overlaps matter.
    open_jobs     BLOB NOT NULL,
    -- JSON: what was asked for. Last, since it may be long.
    definition    TEXT NOT NULL,
    CONSTRAINT next_shape CHECK (
        CASE WHEN next_fire_at IS NULL THEN next_nominal IS NULL
             ELSE next_nominal IS NOT NULL AND next_fire_at >= next_nominal AND NOT paused END),
    CONSTRAINT open_shape CHECK (length(open_jobs) % 16 = 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_due ON schedule (next_fire_at) WHERE next_fire_at IS NOT NULL;
CREATE INDEX schedule_tzdb ON schedule (tzdb);

-- The ledger: one line for every nominal time, or for several that were passed over together. The key is what makes a second job for
-- one time impossible.
CREATE TABLE occurrence (
    schedule TEXT NOT NULL,
    nominal  INTEGER NOT NULL,
    -- The last of them, and how many there are.
    until    INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    outcome  TEXT NOT NULL,
    reason   TEXT,
    job      BLOB,
    at       INTEGER NOT NULL,
    PRIMARY KEY (schedule, nominal),
    -- No more than this: a line that a backfill cut short is counted by the cadence of that day.
    CONSTRAINT span_shape CHECK (count >= 1 AND until >= nominal),
    CONSTRAINT outcome_shape CHECK (
        CASE WHEN outcome = 'fired'
             THEN job IS NOT NULL AND count = 1 AND until = nominal
                  AND (reason IS NULL OR reason = 'catch_up' OR reason = 'backfill' OR reason = 'trigger')
             WHEN job IS NOT NULL OR reason IS NULL THEN 0
             WHEN outcome = 'skipped' THEN reason = 'overlap' OR reason = 'paused'
             ELSE outcome = 'missed' AND reason = 'late' END)
) STRICT, WITHOUT ROWID;

CREATE INDEX occurrence_until ON occurrence (until);
