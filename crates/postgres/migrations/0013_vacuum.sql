-- The leader vacuums the tables of unfinished jobs about twice a second. Two habits of autovacuum would make them grow
-- meanwhile, by all rows that die until it is done.

-- At the end of a vacuum autovacuum tries for up to five seconds to get the lock that shrinks the file, and holds a lock
-- that lets no other vacuum in. In a steady flow of jobs it never gets it. VACUUM (TRUNCATE) shrinks a file on request.
ALTER TABLE orchestrix.job SET (vacuum_truncate = false);
ALTER TABLE orchestrix.ready SET (vacuum_truncate = false);
ALTER TABLE orchestrix.depth_delta SET (vacuum_truncate = false);

-- ANALYZE holds a snapshot while it samples a table. With the default of 30,000 rows it took up to two seconds for a
-- partition, as often as once a minute. 3,000 rows take a tenth, and every statement has an index for what it reads.
CREATE FUNCTION orchestrix.sample_fewer_rows(relation regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    changes text;
BEGIN
    SELECT string_agg(format('ALTER %I SET STATISTICS 10', attname), ', ') INTO changes
    FROM pg_attribute WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped;
    EXECUTE format('ALTER TABLE %s %s', relation, changes);
END
$$;

-- Reaches the partitions that exist.
SELECT orchestrix.sample_fewer_rows(parent) FROM unnest(ARRAY['orchestrix.history', 'orchestrix.payload', 'orchestrix.log']::regclass[]) AS parent;

-- A new partition does not take over the setting.
CREATE OR REPLACE FUNCTION orchestrix.make_partitions(from_day date, to_day date) RETURNS integer LANGUAGE plpgsql SET timezone = 'UTC' SET datestyle = 'ISO' AS $$
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
                PERFORM orchestrix.sample_fewer_rows(to_regclass('orchestrix.' || part));
                made := made + 1;
            EXCEPTION WHEN check_violation OR duplicate_table OR invalid_object_definition THEN
                RAISE NOTICE 'no partition % : %', part, SQLERRM;
            END;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;
