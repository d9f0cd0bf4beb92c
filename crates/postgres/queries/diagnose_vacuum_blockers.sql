-- Sessions, prepared transactions, standbys and slots that keep vacuum from removing rows of this database, the
-- oldest first; and slots that retain WAL. $1 limit. A role without pg_read_all_stats sees no details of other roles'
-- sessions.
SELECT * FROM (
    SELECT 'session' AS kind, pid, coalesce(nullif(application_name, ''), usename::text, '') AS name, coalesce(usename::text, '') AS owner,
           coalesce(state, '') AS state, extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds,
           greatest(age(backend_xmin), age(backend_xid)) AS transactions, NULL::bigint AS retained
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
      AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    UNION ALL
    SELECT 'prepared', NULL, gid, owner::text, '', extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction), NULL
    FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT 'standby', pid, coalesce(nullif(application_name, ''), client_addr::text, ''), coalesce(usename::text, ''), coalesce(state, ''), NULL,
           age(backend_xmin), NULL
    FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
    UNION ALL
    SELECT 'slot', active_pid, slot_name::text, coalesce(plugin::text, slot_type), CASE WHEN active THEN 'active' ELSE 'inactive' END, NULL, age(xmin),
           CASE WHEN restart_lsn IS NULL THEN NULL WHEN pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_last_wal_replay_lsn(), restart_lsn)::bigint
                ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint END
    FROM pg_replication_slots) AS blocker
ORDER BY seconds DESC NULLS LAST, transactions DESC NULLS LAST LIMIT $1
