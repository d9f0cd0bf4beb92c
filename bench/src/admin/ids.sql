-- A job id with the given creation time.
CREATE FUNCTION bench_id(at timestamptz, i bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(i % 4096), 3, '0') || '8' || substr(md5(i::text), 1, 15))::uuid
$$;
SELECT orchestrix.make_partitions(d - 8, d + 1) FROM (SELECT (timestamptz '{now}' AT TIME ZONE 'UTC')::date AS d) AS today
