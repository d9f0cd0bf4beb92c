-- What operators do: operations on many jobs, API keys, and the record of who did what.

-- One action on many jobs, worked off by the leader in steps. The filter is kept as it was read.
CREATE TABLE operation (
    id          BLOB NOT NULL PRIMARY KEY,
    action      TEXT NOT NULL CHECK (action IN ('retry', 'cancel', 'priority')),
    priority    INTEGER,
    filter      TEXT NOT NULL,
    dry_run     INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('running', 'done', 'aborted', 'failed')),
    cursor      BLOB,
    matched     INTEGER NOT NULL DEFAULT 0,
    changed     INTEGER NOT NULL DEFAULT 0,
    refused     INTEGER NOT NULL DEFAULT 0,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    finished_at INTEGER,
    error       TEXT,
    actor       TEXT NOT NULL,
    tenant      TEXT,
    CHECK ((action = 'priority') = (priority IS NOT NULL)),
    CHECK ((state = 'running') = (finished_at IS NULL)),
    CHECK ((state = 'failed') = (error IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_open ON operation (id) WHERE state = 'running';
CREATE INDEX operation_finished ON operation (finished_at) WHERE finished_at IS NOT NULL;

-- Of a key only the SHA-256 of its secret is kept.
CREATE TABLE api_key (
    id          TEXT NOT NULL PRIMARY KEY,
    digest      BLOB NOT NULL CHECK (length(digest) = 32),
    name        TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('client', 'worker', 'operator', 'admin')),
    tenant      TEXT,
    rate_count  INTEGER,
    rate_per_ms INTEGER,
    rate_burst  INTEGER,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    revoked_at  INTEGER,
    CHECK ((rate_count IS NULL) = (rate_per_ms IS NULL) AND (rate_count IS NULL) = (rate_burst IS NULL))
) STRICT, WITHOUT ROWID;

-- Never reused numbers, so that a reader's place in the list stays good.
CREATE TABLE audit (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    tenant     TEXT,
    action     TEXT NOT NULL,
    target     TEXT,
    detail     TEXT,
    request_id TEXT NOT NULL,
    outcome    TEXT
) STRICT;
