-- Whether the partitions of today and tomorrow are there, and whether anything went to the default one.
SELECT p.name, to_regclass('orchestrix.' || p.name || to_char((now() AT TIME ZONE 'UTC')::date, '_YYYYMMDD')) IS NOT NULL,
       to_regclass('orchestrix.' || p.name || to_char((now() AT TIME ZONE 'UTC')::date + 1, '_YYYYMMDD')) IS NOT NULL, p.taken
FROM (SELECT 'history' AS name, EXISTS (SELECT FROM orchestrix.history_default) AS taken
      UNION ALL SELECT 'payload', EXISTS (SELECT FROM orchestrix.payload_default)
      UNION ALL SELECT 'log', EXISTS (SELECT FROM orchestrix.log_default)) AS p
