-- What the server is, what its clock says, and what whoever asks may see.
SELECT current_setting('server_version_num')::integer, split_part(current_setting('server_version'), ' ', 1), clock_timestamp(),
       pg_is_in_recovery(), current_user::text, current_database()::text, pg_database_size(current_database()),
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
