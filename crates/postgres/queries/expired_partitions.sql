-- Daily partitions of a table that end before a time. $1 table, $2 age in milliseconds, $3 limit.
SELECT c.relname AS partition, to_date(right(c.relname, 8), 'YYYYMMDD')::text AS day
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = ('orchestrix.' || $1::text)::regclass AND c.relname ~ '_[0-9]{8}$'
  AND (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC' <= now() - $2::bigint * interval '1 millisecond'
ORDER BY c.relname LIMIT $3
