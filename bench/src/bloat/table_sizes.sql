-- The size of each table, with its partitions. History, payloads and logs are kept, so they grow with every job.
SELECT root.relname::text                                                     AS name,
       coalesce(sum(pg_relation_size(part.oid)), 0)::bigint                   AS heap,
       coalesce(sum(pg_indexes_size(part.oid)), 0)::bigint                    AS indexes,
       coalesce(sum(pg_total_relation_size(part.oid)), 0)::bigint             AS total,
       coalesce(sum(pg_stat_get_live_tuples(part.oid)), 0)::bigint            AS live_rows,
       coalesce(sum(pg_stat_get_dead_tuples(part.oid)), 0)::bigint            AS dead_rows,
       coalesce(sum(pg_stat_get_tuples_inserted(part.oid)), 0)::bigint        AS inserted_rows
FROM pg_class part
JOIN pg_class root ON root.oid = coalesce(pg_partition_root(part.oid), part.oid)
WHERE part.relnamespace = 'orchestrix'::regnamespace
  AND part.relkind = 'r'
  AND root.relname <> ALL (ARRAY ['history', 'payload', 'log'])
GROUP BY root.relname
ORDER BY root.relname
