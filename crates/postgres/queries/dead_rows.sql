-- Dead rows of the tables $1 that this role may vacuum, and how many there may be: as many as live rows, or a few pages.
-- The server refuses to vacuum a table for a role that owns neither it nor the database.
-- Index: pg_class_relname_nsp_index. The functions read counters in memory.
SELECT c.relname::text                                  AS name,
       pg_stat_get_dead_tuples(c.oid)                   AS dead,
       greatest(pg_stat_get_live_tuples(c.oid), 2000)   AS allowed,
       pg_stat_get_vacuum_count(c.oid)                  AS vacuums
FROM pg_class c
WHERE c.relnamespace = 'orchestrix'::regnamespace
  AND c.relname = ANY ($1::text[]::name[])
  AND (pg_has_role(c.relowner, 'USAGE')
       OR pg_has_role((SELECT d.datdba FROM pg_database d WHERE d.datname = current_database()), 'USAGE'))
