-- Milliseconds until each sweep has work, and the milliseconds that the server has been up. $1 time-zone database
-- version.
-- Relies on job_due, queue_resuming, job_expiry, job_lease, job_timeout, schedule_due and schedule_tzdb.
SELECT CASE WHEN EXISTS (SELECT FROM orchestrix.queue WHERE resuming) THEN 0
            ELSE (SELECT (extract(epoch FROM eligible_at - now()) * 1000)::float8 FROM orchestrix.job WHERE state IN ('scheduled', 'retrying') ORDER BY eligible_at LIMIT 1) END AS promote_ms,
       (SELECT (extract(epoch FROM expires_at - now()) * 1000)::float8 FROM orchestrix.job WHERE expires_at IS NOT NULL AND started_at IS NULL ORDER BY expires_at LIMIT 1) AS expire_ms,
       (SELECT (extract(epoch FROM lease_expires_at - now()) * 1000)::float8 FROM orchestrix.job WHERE lease_expires_at IS NOT NULL ORDER BY lease_expires_at LIMIT 1) AS reap_ms,
       (SELECT (extract(epoch FROM timeout_at - now()) * 1000)::float8 FROM orchestrix.job WHERE timeout_at IS NOT NULL ORDER BY timeout_at LIMIT 1) AS time_out_ms,
       EXISTS (SELECT FROM orchestrix.settled) AS unblock,
       CASE WHEN EXISTS (SELECT FROM orchestrix.schedule WHERE tzdb < $1) OR EXISTS (SELECT FROM orchestrix.schedule WHERE tzdb > $1) THEN 0
            ELSE (SELECT (extract(epoch FROM next_fire_at - now()) * 1000)::float8 FROM orchestrix.schedule WHERE next_fire_at IS NOT NULL ORDER BY next_fire_at LIMIT 1) END AS fire_ms,
       (extract(epoch FROM pg_catalog.clock_timestamp() - pg_postmaster_start_time()) * 1000)::float8 AS up_ms
