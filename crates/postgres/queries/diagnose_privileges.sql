-- Privileges that this role lacks on the database, the schema and the objects in it. $1 limit.
-- Partitions are left out: they are reached through their parents.
SELECT * FROM (
    SELECT 'database' AS kind, current_database()::text AS name,
           CASE WHEN has_database_privilege(current_database(), 'CREATE') THEN '{}' ELSE '{CREATE}' END::text[] AS missing
    UNION ALL
    SELECT 'schema', n.nspname::text, array_remove(ARRAY[CASE WHEN NOT has_schema_privilege(n.oid, 'USAGE') THEN 'USAGE' END,
                                                        CASE WHEN NOT has_schema_privilege(n.oid, 'CREATE') THEN 'CREATE' END], NULL)
    FROM pg_namespace n WHERE n.nspname = 'orchestrix'
    UNION ALL
    SELECT 'table', c.relname::text, array_remove(
               ARRAY[CASE WHEN NOT has_table_privilege(c.oid, 'SELECT') THEN 'SELECT' END,
                     CASE WHEN c.relname <> 'migration' AND c.relkind <> 'v' AND NOT has_table_privilege(c.oid, 'INSERT') THEN 'INSERT' END,
                     CASE WHEN c.relname <> 'migration' AND c.relkind <> 'v' AND NOT has_table_privilege(c.oid, 'UPDATE') THEN 'UPDATE' END,
                     CASE WHEN c.relname <> 'migration' AND c.relkind <> 'v' AND NOT has_table_privilege(c.oid, 'DELETE') THEN 'DELETE' END,
                     CASE WHEN c.relkind = 'p' AND NOT pg_has_role(c.relowner, 'USAGE') THEN 'OWNER' END], NULL)
    FROM pg_class c WHERE c.relnamespace = to_regnamespace('orchestrix') AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
    UNION ALL
    SELECT 'sequence', c.relname::text, CASE WHEN has_sequence_privilege(c.oid, 'USAGE') THEN '{}' ELSE '{USAGE}' END::text[]
    FROM pg_class c WHERE c.relnamespace = to_regnamespace('orchestrix') AND c.relkind = 'S'
    UNION ALL
    SELECT 'function', p.proname::text, CASE WHEN has_function_privilege(p.oid, 'EXECUTE') THEN '{}' ELSE '{EXECUTE}' END::text[]
    FROM pg_proc p WHERE p.pronamespace = to_regnamespace('orchestrix')) AS privilege
WHERE missing <> '{}' ORDER BY kind, name LIMIT $1
