-- The engine's tables. A job is one row from its recording to the end of its retention, updated in place: there is one
-- writer and nothing that bloats, so finished jobs need no table of their own. What must stay small is the indexes of
-- claims and sweeps, and they are partial. Times are microseconds since 1970, ids and secrets are 16 bytes.

CREATE TABLE job (
    id               BLOB NOT NULL PRIMARY KEY,
    state            TEXT NOT NULL,
    queue            TEXT NOT NULL,
    job_type         TEXT NOT NULL,
    tenant           TEXT NOT NULL,
    -- The negated priority, so that every column of the claim order runs in one direction.
    rank             INTEGER NOT NULL,
    attempts         INTEGER NOT NULL DEFAULT 0,
    max_attempts     INTEGER NOT NULL,
    losses           INTEGER NOT NULL DEFAULT 0,
    lease_counter    INTEGER NOT NULL DEFAULT 0,
    lease_secret     BLOB,
    lease_ms         INTEGER NOT NULL,
    timeout_ms       INTEGER,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    eligible_at      INTEGER NOT NULL,
    started_at       INTEGER,
    finished_at      INTEGER,
    expires_at       INTEGER,
    lease_expires_at INTEGER,
    timeout_at       INTEGER,
    -- Parents that have not finished.
    waits_for        INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    has_parents      INTEGER NOT NULL DEFAULT 0,
    has_dependents   INTEGER NOT NULL DEFAULT 0,
    -- The payload is in the table `payload`.
    payload_apart    INTEGER NOT NULL DEFAULT 0,
    worker           TEXT,
    reason           TEXT,
    concurrency_key  TEXT,
    rate_limit_key   TEXT,
    -- JSON: whatever no statement looks at, and only where it differs from the default.
    options          TEXT,
    progress         TEXT,
    payload          TEXT,
    result           TEXT,
    -- The state machine, restated: what each state's row must look like. Comparisons one by one: for a list of three or more
    -- SQLite would fill a table of its own in every write.
    CONSTRAINT shape CHECK (
        CASE WHEN state = 'running' OR state = 'dispatched'
             THEN lease_expires_at IS NOT NULL AND lease_secret IS NOT NULL AND worker IS NOT NULL AND started_at IS NOT NULL
                  AND attempts < max_attempts AND waits_for = 0 AND finished_at IS NULL
             WHEN lease_expires_at IS NOT NULL OR timeout_at IS NOT NULL OR cancel_requested THEN 0
             WHEN state = 'completed' OR state = 'dead' OR state = 'cancelled' THEN finished_at IS NOT NULL AND waits_for = 0
             WHEN finished_at IS NOT NULL THEN 0
             WHEN state = 'pending' OR state = 'scheduled' OR state = 'retrying' THEN waits_for = 0
             WHEN state = 'blocked' THEN waits_for > 0
             ELSE state = 'created' AND waits_for >= 0 END),
    CONSTRAINT budget CHECK (attempts >= 0 AND attempts <= max_attempts),
    CONSTRAINT priority_range CHECK (rank BETWEEN -1000 AND 1000)
) STRICT, WITHOUT ROWID;

-- The order of claims within one lane (a queue and a type). The id that ends every index is the table's key.
CREATE INDEX job_claim ON job (queue, job_type, rank, eligible_at, id) WHERE state = 'pending';
CREATE INDEX job_due ON job (eligible_at) WHERE state IN ('scheduled', 'retrying');
CREATE INDEX job_lease ON job (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE INDEX job_timeout ON job (timeout_at) WHERE timeout_at IS NOT NULL;
CREATE INDEX job_expiry ON job (expires_at) WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL;
CREATE INDEX job_finished ON job (state, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX job_dead ON job (id) WHERE state = 'dead';

-- Payloads too large to be copied along at every step. Written once.
CREATE TABLE payload (id BLOB NOT NULL PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE checkpoint (id BLOB NOT NULL PRIMARY KEY, body TEXT NOT NULL) STRICT;

-- Attempts that ended in anything but a first success; a job keeps its latest hundred. The secret is kept so that a
-- repeated report of the same attempt is known for what it is.
CREATE TABLE attempt (
    job_id     BLOB NOT NULL,
    lease      INTEGER NOT NULL,
    secret     BLOB NOT NULL,
    attempt    INTEGER NOT NULL,
    outcome    TEXT NOT NULL,
    goes_to    TEXT NOT NULL,
    worker     TEXT,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    error      TEXT,
    PRIMARY KEY (job_id, lease)
) STRICT, WITHOUT ROWID;

-- One row per key, for ever: it outlives its job. `last_state` is written when the job is pruned.
CREATE TABLE idempotency (
    tenant      TEXT NOT NULL,
    job_type    TEXT NOT NULL,
    key         TEXT NOT NULL,
    job_id      BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    last_state  TEXT,
    PRIMARY KEY (tenant, job_type, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE dependency (
    child  BLOB NOT NULL,
    parent BLOB NOT NULL,
    -- The parent has finished and the child knows.
    met    INTEGER NOT NULL,
    PRIMARY KEY (child, parent)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependency_open ON dependency (parent, child) WHERE met = 0;

-- Finished jobs whose dependents have not all been told yet.
CREATE TABLE settled (id BLOB NOT NULL PRIMARY KEY, failed INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- How many unfinished jobs there are. Kept in the transaction that moves them; with one writer nobody waits for it.
CREATE TABLE depth (queue TEXT NOT NULL, state TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (queue, state)) STRICT, WITHOUT ROWID;

-- Never reused numbers, so that a reader's place in a log stays good.
CREATE TABLE log (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id      BLOB NOT NULL,
    recorded_at INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    level       TEXT NOT NULL,
    message     TEXT NOT NULL
) STRICT;
CREATE INDEX log_by_job ON log (job_id, seq);

-- What an operator set for a queue. A queue nobody touched has no row.
CREATE TABLE queue (name TEXT NOT NULL PRIMARY KEY, paused INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
    name         TEXT NOT NULL PRIMARY KEY,
    -- JSON lists; null: every queue, every type.
    queues       TEXT,
    job_types    TEXT,
    concurrency  INTEGER NOT NULL,
    free_slots   INTEGER NOT NULL,
    directive    TEXT NOT NULL CHECK (directive IN ('run', 'drain', 'stop')),
    started_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX worker_seen ON worker (last_seen_at);
