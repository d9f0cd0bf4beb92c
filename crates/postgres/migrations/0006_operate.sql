-- What operators do: operations on many jobs, API keys, and the record of who did what.

-- One action on many jobs, worked off by the leader in steps. The filter is kept as it was read.
CREATE TABLE orchestrix.operation (
    id          uuid PRIMARY KEY,
    action      text NOT NULL CHECK (action IN ('retry', 'cancel', 'priority')),
    priority    smallint,
    filter      text NOT NULL,
    dry_run     boolean NOT NULL,
    state       text NOT NULL CHECK (state IN ('running', 'done', 'aborted', 'failed')),
    cursor      uuid,
    matched     bigint NOT NULL DEFAULT 0,
    changed     bigint NOT NULL DEFAULT 0,
    refused     bigint NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    finished_at timestamptz,
    error       text,
    actor       text NOT NULL,
    tenant      text,
    CHECK ((action = 'priority') = (priority IS NOT NULL)),
    CHECK ((state = 'running') = (finished_at IS NULL)),
    CHECK ((state = 'failed') = (error IS NOT NULL))
);
CREATE INDEX operation_open ON orchestrix.operation (id) WHERE state = 'running';
CREATE INDEX operation_finished ON orchestrix.operation (finished_at) WHERE finished_at IS NOT NULL;

-- Of a key only the SHA-256 of its secret is kept.
CREATE TABLE orchestrix.api_key (
    id          text COLLATE "C" PRIMARY KEY,
    digest      bytea NOT NULL CHECK (length(digest) = 32),
    name        text NOT NULL,
    role        text NOT NULL CHECK (role IN ('client', 'worker', 'operator', 'admin')),
    tenant      text,
    rate_count  bigint,
    rate_per_ms bigint,
    rate_burst  bigint,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    revoked_at  timestamptz,
    CHECK ((rate_count IS NULL) = (rate_per_ms IS NULL) AND (rate_count IS NULL) = (rate_burst IS NULL))
);

-- Numbers are never used again, so that a reader's place in the list stays good.
CREATE TABLE orchestrix.audit (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    actor      text NOT NULL,
    tenant     text,
    action     text NOT NULL,
    target     text,
    detail     text,
    request_id text NOT NULL,
    outcome    text
);

-- Queues are listed page by page in the order of their bytes, as everything else is.
ALTER TABLE orchestrix.depth ALTER COLUMN queue TYPE text COLLATE "C";
ALTER TABLE orchestrix.queue ALTER COLUMN name TYPE text COLLATE "C";
