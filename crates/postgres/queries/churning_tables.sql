-- The state of the tables $1 that this role may vacuum: dead rows, live rows, how many rows the planner expects in the
-- pages of the last vacuum (-1: no vacuum yet), pages, and how often a session requested a vacuum.
-- The server refuses to vacuum a table for a role that owns neither it nor the database.
-- Index: pg_class_relname_nsp_index. The functions read counters in memory and the size of the file.
SELECT c.relname::text                  AS name,
       pg_stat_get_dead_tuples(c.oid)   AS dead,
       pg_stat_get_live_tuples(c.oid)   AS live,
       c.reltuples::bigint              AS expected,
       pg_relation_size(c.oid) / current_setting('block_size')::bigint AS pages,
       pg_stat_get_vacuum_count(c.oid)  AS vacuums
FROM pg_class c
WHERE c.relnamespace = 'orchestrix'::regnamespace
  AND c.relname = ANY ($1::text[]::name[])
  AND (pg_has_role(c.relowner, 'USAGE')
       OR pg_has_role((SELECT d.datdba FROM pg_database d WHERE d.datname = current_database()), 'USAGE'))
