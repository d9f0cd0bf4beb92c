-- Whether the partitions of today and tomorrow exist, and whether the default partitions hold rows.
SELECT p.name AS parent, to_regclass('orchestrix.' || p.name || to_char((now() AT TIME ZONE 'UTC')::date, '_YYYYMMDD')) IS NOT NULL AS today,
       to_regclass('orchestrix.' || p.name || to_char((now() AT TIME ZONE 'UTC')::date + 1, '_YYYYMMDD')) IS NOT NULL AS tomorrow, p.default_used
FROM (SELECT 'history' AS name, EXISTS (SELECT FROM orchestrix.history_default) AS default_used
      UNION ALL SELECT 'payload', EXISTS (SELECT FROM orchestrix.payload_default)
      UNION ALL SELECT 'log', EXISTS (SELECT FROM orchestrix.log_default)) AS p
