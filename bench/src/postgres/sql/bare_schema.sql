-- The least that claims and keeps jobs in the same order: one narrow row, updated in place and then moved.
CREATE TABLE job (
    id               uuid PRIMARY KEY,
    eligible_at      timestamptz NOT NULL,
    lease_expires_at timestamptz,
    lease_secret     uuid,
    rank             smallint NOT NULL,
    state            smallint NOT NULL,
    queue            text NOT NULL,
    payload          text NOT NULL
);
CREATE INDEX job_claim ON job (queue, rank, eligible_at, id) WHERE state = 0;
CREATE TABLE history (
    id           uuid PRIMARY KEY,
    eligible_at  timestamptz NOT NULL,
    finished_at  timestamptz NOT NULL,
    lease_secret uuid NOT NULL,
    rank         smallint NOT NULL,
    state        smallint NOT NULL,
    queue        text NOT NULL,
    payload      text NOT NULL
);
