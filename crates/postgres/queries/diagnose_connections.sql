-- How many connections there may be, are kept for others, are taken, and are ours.
SELECT current_setting('max_connections')::bigint,
       current_setting('superuser_reserved_connections')::bigint + coalesce(current_setting('reserved_connections', true), '0')::bigint,
       count(*), count(*) FILTER (WHERE application_name LIKE 'orchestrix%')
FROM pg_stat_activity WHERE backend_type = 'client backend'
