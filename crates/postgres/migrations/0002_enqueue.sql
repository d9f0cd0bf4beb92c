-- Enqueueing from SQL, in the caller's own transaction.

-- A UUID v7 whose bits below the millisecond go on with the time, so that ids made one after the other rise.
CREATE FUNCTION orchestrix.new_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex(floor(t.millis)::bigint), 12, '0') || '7' || lpad(to_hex(floor((t.millis - floor(t.millis)) * 4096)::integer), 3, '0')
            || substr(replace(gen_random_uuid()::text, '-', ''), 17))::uuid
    FROM (SELECT extract(epoch FROM clock_timestamp()) * 1000 AS millis) AS t
$$;

CREATE FUNCTION orchestrix.check_name(field text, value text, longest integer, pattern text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF value IS NULL OR length(value) NOT BETWEEN 1 AND longest OR value !~ pattern THEN
        RAISE EXCEPTION 'invalid request: %: must have 1 to % characters of %', field, longest, pattern
            USING ERRCODE = 'check_violation', COLUMN = field;
    END IF;
END
$$;

-- Records a job, as POST /jobs does, and returns its id; under an idempotency key that is known, the id of the first.
-- A key that was used for a different request is refused with unique_violation. Requests under one key that came in by
-- different ways (SQL and API) are taken as the same.
CREATE FUNCTION orchestrix.enqueue(
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
    INSERT INTO orchestrix.depth_delta VALUES (queue, begins, 1);
    RETURN new_id;
END
$$;
