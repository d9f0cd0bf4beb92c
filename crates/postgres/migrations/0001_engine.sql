-- The engine's tables. One narrow row for every unfinished job (`job`), updated in place; finished jobs move to
-- `history`, partitioned by ranges of their id, or to `dead`, where they wait for a person. See docs/adr/0001.

CREATE TYPE orchestrix.job_state AS ENUM (
    'created', 'blocked', 'scheduled', 'pending', 'dispatched', 'running', 'retrying', 'completed', 'dead', 'cancelled');

CREATE TABLE orchestrix.job (
    -- Ids come in rising order, which packs the key's pages full, and every claim adds an entry in the middle: room for
    -- it saves splitting them all.
    id               uuid PRIMARY KEY WITH (fillfactor = 50),
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    eligible_at      timestamptz NOT NULL,
    started_at       timestamptz,
    lease_expires_at timestamptz,
    timeout_at       timestamptz,
    expires_at       timestamptz,
    timeout_ms       bigint,
    lease_secret     uuid,
    state            orchestrix.job_state NOT NULL,
    lease_counter    integer NOT NULL DEFAULT 0,
    lease_ms         integer NOT NULL DEFAULT 30000,
    -- Parents that have not finished.
    waits_for        integer NOT NULL DEFAULT 0,
    -- The negated priority: a row comparison, which is how a claim starts past the dead head of its index, needs
    -- every column in one direction.
    rank             smallint NOT NULL,
    attempts         smallint NOT NULL DEFAULT 0,
    max_attempts     smallint NOT NULL,
    losses           smallint NOT NULL DEFAULT 0,
    cancel_requested boolean NOT NULL DEFAULT false,
    has_parents      boolean NOT NULL DEFAULT false,
    has_dependents   boolean NOT NULL DEFAULT false,
    -- The payload is in the table `payload`.
    payload_apart    boolean NOT NULL DEFAULT false,
    -- Names are ASCII, and compared as bytes: faster, and the same on every server.
    queue            text COLLATE "C" NOT NULL,
    job_type         text COLLATE "C" NOT NULL,
    tenant           text COLLATE "C" NOT NULL,
    worker           text,
    concurrency_key  text,
    rate_limit_key   text,
    -- Whatever no statement looks at, and only where it differs from the default.
    options          jsonb,
    progress         jsonb,
    attempt_log      jsonb,
    checkpoint       text,
    payload          text,
    -- The state machine, restated: what each state's row must look like.
    CONSTRAINT unfinished CHECK (state < 'completed'),
    CONSTRAINT leased_shape CHECK (
        CASE WHEN state IN ('dispatched', 'running')
             THEN lease_expires_at IS NOT NULL AND lease_secret IS NOT NULL AND worker IS NOT NULL
                  AND started_at IS NOT NULL AND attempts < max_attempts
             ELSE lease_expires_at IS NULL AND timeout_at IS NULL AND NOT cancel_requested END),
    CONSTRAINT waiting_shape CHECK (
        CASE state WHEN 'blocked' THEN waits_for > 0 WHEN 'created' THEN waits_for >= 0 ELSE waits_for = 0 END),
    CONSTRAINT budget CHECK (attempts >= 0 AND attempts <= max_attempts),
    CONSTRAINT priority_range CHECK (rank BETWEEN -1000 AND 1000)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0.1);

-- The order of claims within one lane (a queue and a type).
CREATE INDEX job_claim ON orchestrix.job (queue, job_type, rank, eligible_at, id) WHERE state = 'pending';
CREATE INDEX job_due ON orchestrix.job (eligible_at) WHERE state IN ('scheduled', 'retrying');
CREATE INDEX job_lease ON orchestrix.job (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE INDEX job_timeout ON orchestrix.job (timeout_at) WHERE timeout_at IS NOT NULL;
CREATE INDEX job_expiry ON orchestrix.job (expires_at) WHERE expires_at IS NOT NULL AND started_at IS NULL;

-- Completed and cancelled jobs. The id is a time (UUID v7), so ranges of it are days, and a whole day is dropped at
-- once; `history_default` takes what has no day of its own, so that a missing partition costs speed and nothing else.
CREATE TABLE orchestrix.history (
    id              uuid PRIMARY KEY,
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz NOT NULL,
    eligible_at     timestamptz NOT NULL,
    started_at      timestamptz,
    expires_at      timestamptz,
    timeout_ms      bigint,
    lease_secret    uuid,
    state           orchestrix.job_state NOT NULL,
    lease_counter   integer NOT NULL,
    lease_ms        integer NOT NULL,
    rank            smallint NOT NULL,
    attempts        smallint NOT NULL,
    max_attempts    smallint NOT NULL,
    losses          smallint NOT NULL,
    has_parents     boolean NOT NULL,
    has_dependents  boolean NOT NULL,
    payload_apart   boolean NOT NULL,
    queue           text NOT NULL,
    job_type        text NOT NULL,
    tenant          text NOT NULL,
    worker          text,
    concurrency_key text,
    rate_limit_key  text,
    reason          text,
    options         jsonb,
    progress        jsonb,
    attempt_log     jsonb,
    checkpoint      text,
    payload         text,
    result          text,
    CONSTRAINT finished CHECK (state IN ('completed', 'cancelled'))
) PARTITION BY RANGE (id);

-- Rows arrive in the order of finished_at, so a handful of bytes per 128 pages tell whether a day is past retention.
CREATE INDEX history_finished ON orchestrix.history USING brin (finished_at);
CREATE TABLE orchestrix.history_default PARTITION OF orchestrix.history DEFAULT;

-- Jobs that failed for good: kept longer than the rest, so they live apart.
CREATE TABLE orchestrix.dead (LIKE orchestrix.history INCLUDING DEFAULTS, PRIMARY KEY (id), CONSTRAINT finished CHECK (state = 'dead'));
CREATE INDEX dead_finished ON orchestrix.dead (finished_at);

-- Payloads too large to be copied along at every step. Written once, never moved.
CREATE TABLE orchestrix.payload (id uuid PRIMARY KEY, body text NOT NULL) PARTITION BY RANGE (id);
CREATE TABLE orchestrix.payload_default PARTITION OF orchestrix.payload DEFAULT;

-- One row per key, for ever: it outlives its job. `last_state` is written when the job is pruned.
CREATE TABLE orchestrix.idempotency (
    tenant      text NOT NULL,
    job_type    text NOT NULL,
    key         text NOT NULL,
    job_id      uuid NOT NULL,
    -- Of the request; null when it came through orchestrix.enqueue(), which compares by `sql_request`.
    fingerprint uuid,
    sql_request uuid,
    last_state  orchestrix.job_state,
    PRIMARY KEY (tenant, job_type, key)
);

CREATE TABLE orchestrix.dependency (
    child  uuid NOT NULL,
    parent uuid NOT NULL,
    -- The parent has finished and the child knows.
    met    boolean NOT NULL,
    PRIMARY KEY (child, parent)
);
CREATE INDEX dependency_open ON orchestrix.dependency (parent) WHERE NOT met;

-- Finished jobs whose dependents have not been told yet.
CREATE TABLE orchestrix.settled (id uuid PRIMARY KEY, failed boolean NOT NULL);

-- Changes of depth, appended by every statement that moves jobs and folded into `depth` now and then: a counter row
-- would make producers wait for each other.
CREATE TABLE orchestrix.depth_delta (queue text NOT NULL, state orchestrix.job_state NOT NULL, n bigint NOT NULL)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE orchestrix.depth (queue text NOT NULL, state orchestrix.job_state NOT NULL, n bigint NOT NULL, PRIMARY KEY (queue, state));

CREATE SEQUENCE orchestrix.log_seq;
CREATE TABLE orchestrix.log (
    seq         bigint NOT NULL DEFAULT nextval('orchestrix.log_seq'),
    job_id      uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    at          timestamptz NOT NULL,
    attempt     smallint NOT NULL,
    level       text NOT NULL,
    message     text NOT NULL
) PARTITION BY RANGE (recorded_at);
CREATE INDEX log_by_job ON orchestrix.log (job_id, seq);
CREATE TABLE orchestrix.log_default PARTITION OF orchestrix.log DEFAULT;

-- What an operator set for a queue. A queue nobody touched has no row.
CREATE TABLE orchestrix.queue (name text PRIMARY KEY, paused boolean NOT NULL DEFAULT false);

CREATE TABLE orchestrix.worker (
    name         text PRIMARY KEY,
    -- Null: every queue, every type.
    queues       text[],
    job_types    text[],
    concurrency  integer NOT NULL,
    free_slots   integer NOT NULL,
    directive    text NOT NULL CHECK (directive IN ('run', 'drain', 'stop')),
    started_at   timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL
);
CREATE INDEX worker_seen ON orchestrix.worker (last_seen_at);

-- The smallest id that was made at `time`.
CREATE FUNCTION orchestrix.id_floor("time" timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM "time") * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid
$$;

-- Makes the daily partitions of `from_day` to `to_day` that are missing. A day whose rows went to the default
-- partition already cannot be given one any more; it stays there.
CREATE FUNCTION orchestrix.make_partitions(from_day date, to_day date) RETURNS integer LANGUAGE plpgsql SET timezone = 'UTC' SET datestyle = 'ISO' AS $$
DECLARE
    parent text;
    part text;
    low text;
    high text;
    made integer := 0;
BEGIN
    FOR day IN 0 .. (to_day - from_day) LOOP
        FOREACH parent IN ARRAY ARRAY['history', 'payload', 'log'] LOOP
            part := parent || to_char(from_day + day, '_YYYYMMDD');
            CONTINUE WHEN to_regclass('orchestrix.' || part) IS NOT NULL;
            low := (from_day + day)::timestamptz::text;
            high := (from_day + day + 1)::timestamptz::text;
            IF parent <> 'log' THEN
                low := orchestrix.id_floor(low::timestamptz)::text;
                high := orchestrix.id_floor(high::timestamptz)::text;
            END IF;
            BEGIN
                EXECUTE format('CREATE TABLE orchestrix.%I PARTITION OF orchestrix.%I FOR VALUES FROM (%L) TO (%L)', part, parent, low, high);
                made := made + 1;
            EXCEPTION WHEN check_violation OR duplicate_table OR invalid_object_definition THEN
                RAISE NOTICE 'no partition % : %', part, SQLERRM;
            END;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;

-- The attempt log of a job with one more record; the oldest gives way past a hundred, so that a job that snoozes for
-- ever stays small. The secret is kept so that a repeated report of the same attempt is known for what it is.
CREATE FUNCTION orchestrix.add_attempt(j orchestrix.job, outcome text, goes_to orchestrix.job_state, error text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN outcome IS NULL THEN j.attempt_log
        ELSE CASE WHEN jsonb_array_length(j.attempt_log) >= 100 THEN j.attempt_log - 0 ELSE coalesce(j.attempt_log, '[]') END
            || jsonb_strip_nulls(jsonb_build_object('attempt', j.attempts + 1, 'lease', j.lease_counter, 'secret', j.lease_secret,
                   'outcome', outcome, 'to', goes_to, 'worker', j.worker, 'startedAt', j.started_at, 'endedAt', now(), 'error', error)) END
$$;

-- Every job there is, wherever it lives. A condition on `place` keeps a query out of the other tables.
CREATE VIEW orchestrix.jobs AS
SELECT id, state, job_type, queue, tenant, rank, attempts, max_attempts, losses, created_at, updated_at, eligible_at, started_at,
       NULL::timestamptz AS finished_at, expires_at, lease_expires_at, timeout_ms, lease_ms, lease_counter, lease_secret, cancel_requested,
       has_parents, payload_apart, worker, concurrency_key, rate_limit_key, NULL::text AS reason, options, progress, attempt_log, checkpoint,
       payload, NULL::text AS result, 'job' AS place
FROM orchestrix.job
UNION ALL
SELECT id, state, job_type, queue, tenant, rank, attempts, max_attempts, losses, created_at, finished_at, eligible_at, started_at,
       finished_at, expires_at, NULL, timeout_ms, lease_ms, lease_counter, lease_secret, false,
       has_parents, payload_apart, worker, concurrency_key, rate_limit_key, reason, options, progress, attempt_log, checkpoint,
       payload, result, 'dead'
FROM orchestrix.dead
UNION ALL
SELECT id, state, job_type, queue, tenant, rank, attempts, max_attempts, losses, created_at, finished_at, eligible_at, started_at,
       finished_at, expires_at, NULL, timeout_ms, lease_ms, lease_counter, lease_secret, false,
       has_parents, payload_apart, worker, concurrency_key, rate_limit_key, reason, options, progress, attempt_log, checkpoint,
       payload, result, 'history'
FROM orchestrix.history;

-- pglz is what limits the enqueue of large payloads. Partitions made from here on take this over from their parent.
DO $$
DECLARE
    place record;
BEGIN
    FOR place IN SELECT * FROM (VALUES ('payload', 'body'), ('payload_default', 'body'), ('history', 'result'), ('history_default', 'result'),
                                       ('job', 'checkpoint'), ('job', 'payload'), ('dead', 'payload')) AS p (relation, attribute) LOOP
        BEGIN
            EXECUTE format('ALTER TABLE orchestrix.%I ALTER %I SET COMPRESSION lz4', place.relation, place.attribute);
        EXCEPTION WHEN feature_not_supported THEN
            EXECUTE format('ALTER TABLE orchestrix.%I ALTER %I SET STORAGE EXTERNAL', place.relation, place.attribute);
        END;
    END LOOP;
END
$$;
