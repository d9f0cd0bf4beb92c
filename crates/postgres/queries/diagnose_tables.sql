-- Tables with their dead rows, and the number of dead rows at which autovacuum starts. $1 limit.
SELECT c.relname::text AS name, coalesce(s.n_live_tup, 0) AS live, coalesce(s.n_dead_tup, 0) AS dead,
       extract(epoch FROM now() - greatest(s.last_autovacuum, s.last_vacuum))::float8 AS vacuumed_seconds_ago,
       coalesce((SELECT o.option_value::boolean FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'autovacuum_enabled'), true) AS autovacuum,
       coalesce((SELECT o.option_value::float8 FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'autovacuum_vacuum_threshold'),
                current_setting('autovacuum_vacuum_threshold')::float8)
       + coalesce((SELECT o.option_value::float8 FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'autovacuum_vacuum_scale_factor'),
                  current_setting('autovacuum_vacuum_scale_factor')::float8) * greatest(c.reltuples, 0) AS vacuum_threshold
FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
WHERE c.relnamespace = to_regnamespace('orchestrix') AND c.relkind = 'r'
ORDER BY 3 DESC, 1 LIMIT $1
