-- The plain table of a bare queue: the limit of `single` and `bulk`.
CREATE TABLE queue (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue       text NOT NULL,
    run_at      timestamptz NOT NULL DEFAULT now(),
    created_at  timestamptz NOT NULL DEFAULT now(),
    priority    smallint NOT NULL DEFAULT 0,
    attempts    smallint NOT NULL DEFAULT 0,
    state       smallint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    lease_by    text,
    payload     jsonb NOT NULL
);
CREATE INDEX queue_claim ON queue (queue, priority DESC, id) WHERE state = 0;
