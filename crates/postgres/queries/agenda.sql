-- Milliseconds until each sweep has something to do; and how long the server has been up. $1 the version of the time-zone database.
SELECT (SELECT (extract(epoch FROM eligible_at - now()) * 1000)::float8 FROM orchestrix.job WHERE state IN ('scheduled', 'retrying') ORDER BY eligible_at LIMIT 1),
       (SELECT (extract(epoch FROM expires_at - now()) * 1000)::float8 FROM orchestrix.job WHERE expires_at IS NOT NULL AND started_at IS NULL ORDER BY expires_at LIMIT 1),
       (SELECT (extract(epoch FROM lease_expires_at - now()) * 1000)::float8 FROM orchestrix.job WHERE lease_expires_at IS NOT NULL ORDER BY lease_expires_at LIMIT 1),
       (SELECT (extract(epoch FROM timeout_at - now()) * 1000)::float8 FROM orchestrix.job WHERE timeout_at IS NOT NULL ORDER BY timeout_at LIMIT 1),
       EXISTS (SELECT FROM orchestrix.settled),
       CASE WHEN EXISTS (SELECT FROM orchestrix.schedule WHERE tzdb < $1) OR EXISTS (SELECT FROM orchestrix.schedule WHERE tzdb > $1) THEN 0
            ELSE (SELECT (extract(epoch FROM next_fire_at - now()) * 1000)::float8 FROM orchestrix.schedule WHERE next_fire_at IS NOT NULL ORDER BY next_fire_at LIMIT 1) END,
       (extract(epoch FROM pg_catalog.clock_timestamp() - pg_postmaster_start_time()) * 1000)::float8
