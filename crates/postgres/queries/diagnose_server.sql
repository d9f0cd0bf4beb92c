-- The server's version, clock and role, and what this session may see.
SELECT current_setting('server_version_num')::integer AS version_number, split_part(current_setting('server_version'), ' ', 1) AS version,
       clock_timestamp() AS time, pg_is_in_recovery() AS in_recovery, current_user::text AS role, current_database()::text AS database,
       pg_database_size(current_database()) AS bytes, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all
