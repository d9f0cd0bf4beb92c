-- The server's connection limit, reserved connections, used connections, and those of Orchestrix.
SELECT current_setting('max_connections')::bigint AS max_connections,
       current_setting('superuser_reserved_connections')::bigint + coalesce(current_setting('reserved_connections', true), '0')::bigint AS reserved,
       count(*) AS used, count(*) FILTER (WHERE application_name LIKE 'orchestrix%') AS orchestrix
FROM pg_stat_activity WHERE backend_type = 'client backend'
