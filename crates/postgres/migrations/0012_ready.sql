-- Which jobs a claim may take, and in which order.
--
-- A ready batch lists up to 64 jobs that became claimable together: same queue, type, rank and time of eligibility.
-- The transaction that makes jobs pending inserts their batch, so a claim that sees a pending job sees its batch.
-- The job's own row stays the truth: a claim checks it, and deletes a batch that lists no pending job any more.
-- One index for each kind of claim orders the batches. An entry serves 64 jobs, where an index on the jobs themselves
-- needs an entry per job. See docs/adr/0004.

-- Waits for transactions that enqueue or claim, and lets no new one in before the end.
LOCK TABLE orchestrix.job, orchestrix.depth_delta, orchestrix.queue IN ACCESS EXCLUSIVE MODE;

CREATE TABLE orchestrix.ready (
    rank        smallint NOT NULL,
    eligible_at timestamptz NOT NULL,
    -- At or before every id in `ids`.
    first_id    uuid NOT NULL,
    -- A claim found the batch while its queue was paused. Resuming the queue returns the batch.
    parked      boolean NOT NULL DEFAULT false,
    queue       text COLLATE "C" NOT NULL,
    job_type    text COLLATE "C" NOT NULL,
    ids         uuid[] NOT NULL CHECK (cardinality(ids) BETWEEN 1 AND 64)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0.1);
ALTER TABLE orchestrix.ready ALTER ids SET STORAGE PLAIN;

-- Any queue and type; one type; one queue; one queue and type.
CREATE INDEX ready_order ON orchestrix.ready (rank, eligible_at, first_id) WHERE NOT parked;
CREATE INDEX ready_type ON orchestrix.ready (job_type, rank, eligible_at, first_id) WHERE NOT parked;
CREATE INDEX ready_queue ON orchestrix.ready (queue, rank, eligible_at, first_id) WHERE NOT parked;
CREATE INDEX ready_lane ON orchestrix.ready (queue, job_type, rank, eligible_at, first_id);
CREATE INDEX ready_parked ON orchestrix.ready (queue, rank, eligible_at, first_id) WHERE parked;

-- The queue was resumed, and some of its batches are still parked.
ALTER TABLE orchestrix.queue ADD COLUMN resuming boolean NOT NULL DEFAULT false;
CREATE INDEX queue_resuming ON orchestrix.queue (name) WHERE resuming;

INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, ids)
SELECT rank, eligible_at, (array_agg(id ORDER BY id))[1], queue, job_type, array_agg(id ORDER BY id)
FROM (SELECT *, (row_number() OVER (PARTITION BY queue, job_type, rank, eligible_at ORDER BY id) - 1) / 64 AS part
      FROM orchestrix.job WHERE state = 'pending') AS j
GROUP BY queue, job_type, rank, eligible_at, part
ORDER BY rank, eligible_at, 3;

DROP INDEX orchestrix.job_claim;

-- Jobs that are due at the same time become pending in the order of their ids, so that their batches do not overlap.
DROP INDEX orchestrix.job_due;
CREATE INDEX job_due ON orchestrix.job (eligible_at, id) WHERE state IN ('scheduled', 'retrying');

-- A change of depth names all queues that a statement touched: one row instead of one for each queue.
INSERT INTO orchestrix.depth AS d (queue, state, n)
SELECT queue, state, sum(n) FROM orchestrix.depth_delta GROUP BY queue, state HAVING sum(n) <> 0 ORDER BY queue, state
ON CONFLICT (queue, state) DO UPDATE SET n = d.n + excluded.n;
DROP TABLE orchestrix.depth_delta;
CREATE TABLE orchestrix.depth_delta (state orchestrix.job_state NOT NULL, queues text[] NOT NULL, counts bigint[] NOT NULL)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- orchestrix.enqueue() adds its job to a ready batch of its own.
CREATE OR REPLACE FUNCTION orchestrix.enqueue(
    job_type text,
    payload jsonb DEFAULT 'null',
    queue text DEFAULT 'default',
    priority integer DEFAULT 0,
    run_at timestamptz DEFAULT NULL,
    idempotency_key text DEFAULT NULL,
    max_attempts integer DEFAULT 10,
    tenant text DEFAULT 'default'
) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    new_id uuid := orchestrix.new_id();
    -- Without the time to run: a retry of `now() + interval '1 hour'` is the same request and names another instant.
    request uuid := md5(jsonb_build_array(job_type, payload, queue, priority, run_at IS NULL, max_attempts, tenant)::text)::uuid;
    body text := payload::text;
    apart boolean;
    known record;
    starts timestamptz := greatest(run_at, now());
    begins orchestrix.job_state := CASE WHEN run_at > now() THEN 'scheduled' ELSE 'pending' END;
BEGIN
    PERFORM orchestrix.check_name('jobType', job_type, 128, '^[A-Za-z0-9_.:-]+$');
    PERFORM orchestrix.check_name('queue', queue, 128, '^[A-Za-z0-9_.-]+$');
    PERFORM orchestrix.check_name('tenant', tenant, 128, '^[A-Za-z0-9_.-]+$');
    IF priority IS NULL OR priority NOT BETWEEN -1000 AND 1000 THEN
        RAISE EXCEPTION 'invalid request: priority: must be from -1000 to 1000' USING ERRCODE = 'check_violation', COLUMN = 'priority';
    END IF;
    IF max_attempts IS NULL OR max_attempts NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'invalid request: maxAttempts: must be from 1 to 10000' USING ERRCODE = 'check_violation', COLUMN = 'maxAttempts';
    END IF;
    IF run_at IS NOT NULL AND run_at NOT BETWEEN '2000-01-01Z' AND '2200-01-01Z' THEN
        RAISE EXCEPTION 'invalid request: runAt: must lie between the years 2000 and 2200' USING ERRCODE = 'check_violation', COLUMN = 'runAt';
    END IF;
    body := coalesce(body, 'null');
    IF octet_length(body) > 1048576 THEN
        RAISE EXCEPTION 'invalid request: payload: is over the limit of 1048576 bytes' USING ERRCODE = 'check_violation', COLUMN = 'payload';
    END IF;
    IF idempotency_key IS NOT NULL THEN
        -- Spelled out, since what counts as a space depends on the database's locale: every space and control character, and
        -- marks that cannot be seen.
        PERFORM orchestrix.check_name('idempotencyKey', idempotency_key, 255,
            '^[^\u0001-\u0020\u007F-\u00A0\u00AD\u1680\u2000-\u200F\u2028-\u202F\u205F-\u206F\u3000\uFEFF]+$');
        INSERT INTO orchestrix.idempotency AS i (tenant, job_type, key, job_id, sql_request)
        VALUES (tenant, job_type, idempotency_key, new_id, request)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            SELECT i.job_id, i.sql_request INTO known FROM orchestrix.idempotency i
            WHERE i.tenant = enqueue.tenant AND i.job_type = enqueue.job_type AND i.key = idempotency_key;
            IF known.job_id IS NULL THEN
                -- Only in REPEATABLE READ and above: the key was recorded after this transaction's snapshot.
                RAISE EXCEPTION 'the idempotency key was recorded by a concurrent transaction' USING ERRCODE = 'serialization_failure';
            END IF;
            IF known.sql_request <> request THEN
                RAISE EXCEPTION 'the idempotency key was used for a different request, job %', known.job_id
                    USING ERRCODE = 'unique_violation', CONSTRAINT = 'idempotency_key_reused';
            END IF;
            RETURN known.job_id;
        END IF;
    END IF;
    apart := octet_length(body) > 512;
    IF apart THEN
        INSERT INTO orchestrix.payload VALUES (new_id, body);
    END IF;
    INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, state, rank, max_attempts, payload_apart, queue, job_type, tenant, options, payload)
    VALUES (new_id, now(), now(), starts, begins, -priority, max_attempts, apart, queue, job_type, tenant,
            CASE WHEN idempotency_key IS NOT NULL THEN jsonb_build_object('idempotencyKey', idempotency_key) END,
            CASE WHEN NOT apart THEN body END);
    IF begins = 'pending' THEN
        INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, ids)
        VALUES (-priority, starts, new_id, queue, job_type, ARRAY[new_id]);
    END IF;
    INSERT INTO orchestrix.depth_delta (state, queues, counts) VALUES (begins, ARRAY[queue], ARRAY[1]);
    RETURN new_id;
END
$$;
