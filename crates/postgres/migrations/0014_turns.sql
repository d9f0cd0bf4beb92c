-- Fair shares: the tenants of one priority take turns, in the order of their positions on a ring. A ready batch lists
-- jobs of one tenant, and the indexes of claims order batches by priority, ring position and time. See docs/adr/0005.

-- Waits for transactions that enqueue or claim, and lets no new one in before the end.
LOCK TABLE orchestrix.job, orchestrix.ready, orchestrix.queue IN ACCESS EXCLUSIVE MODE;

-- What an operator set for a tenant. A tenant without a row has the defaults.
CREATE TABLE orchestrix.tenant (
    name   text COLLATE "C" PRIMARY KEY,
    weight integer NOT NULL DEFAULT 1 CHECK (weight BETWEEN 1 AND 1000)
);

-- The position of a tenant on the ring: the first 64 bits of a hash of its name, which the program computes, too.
CREATE FUNCTION orchestrix.ring_position(tenant text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ('x' || encode(substr(sha256(tenant::bytea), 1, 8), 'hex'))::bit(64)::bigint
$$;

-- Batches that list jobs of several tenants are split. All of them are made again from the jobs, unparked: a claim parks
-- those of paused queues.
TRUNCATE orchestrix.ready;
DROP INDEX orchestrix.ready_order, orchestrix.ready_type, orchestrix.ready_queue, orchestrix.ready_lane;
ALTER TABLE orchestrix.ready ADD COLUMN tenant text COLLATE "C" NOT NULL, ADD COLUMN ring bigint NOT NULL;
INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
SELECT rank, eligible_at, (array_agg(id ORDER BY id))[1], queue, job_type, tenant, orchestrix.ring_position(tenant), array_agg(id ORDER BY id)
FROM (SELECT *, (row_number() OVER (PARTITION BY queue, job_type, tenant, rank, eligible_at ORDER BY id) - 1) / 64 AS part
      FROM orchestrix.job WHERE state = 'pending') AS j
GROUP BY queue, job_type, tenant, rank, eligible_at, part
ORDER BY rank, eligible_at, 3;

-- Any queue and type; one type; one queue; one queue and type.
CREATE INDEX ready_order ON orchestrix.ready (rank, ring, eligible_at, first_id) WHERE NOT parked;
CREATE INDEX ready_type ON orchestrix.ready (job_type, rank, ring, eligible_at, first_id) WHERE NOT parked;
CREATE INDEX ready_queue ON orchestrix.ready (queue, rank, ring, eligible_at, first_id) WHERE NOT parked;
CREATE INDEX ready_lane ON orchestrix.ready (queue, job_type, rank, ring, eligible_at, first_id);

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
        INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
        VALUES (-priority, starts, new_id, queue, job_type, tenant, orchestrix.ring_position(tenant), ARRAY[new_id]);
    END IF;
    INSERT INTO orchestrix.depth_delta (state, queues, counts) VALUES (begins, ARRAY[queue], ARRAY[1]);
    RETURN new_id;
END
$$;
