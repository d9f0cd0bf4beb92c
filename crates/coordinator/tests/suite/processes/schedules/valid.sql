-- A valid history of three schedules, one per misfire rule, with a time without a leader. All were put half a second
-- after midnight.
SET application_name = 'node1';
INSERT INTO audit.takeover (epoch, node) SELECT epoch, 'node1' FROM orchestrix.leader;
INSERT INTO audit.plan
SELECT s.name, s.period, 0, s.misfire, '2026-01-01 00:00:00.2Z', '2026-01-01 00:00:00.7Z'
FROM (VALUES ('all', 1, 'catch_up'), ('once', 12, 'fire_once'), ('none', 1, 'skip')) AS s (name, period, misfire);
INSERT INTO orchestrix.schedule (name, definition, paused, created_at, updated_at, counted_from, next_nominal, next_fire_at, open_jobs, tzdb)
SELECT s.name, '{}', false, '2026-01-01 00:00:00.5Z', '2026-01-01 00:00:00.5Z', s.next, s.next, s.next, '{}', ''
FROM (VALUES ('all', '2026-01-01 00:00:11Z'::timestamptz), ('once', '2026-01-01 00:00:48Z'), ('none', '2026-01-01 00:00:11Z')) AS s (name, next);

-- The nominal time, the time of writing and the outcome. The last step is 10.4 s after midnight; that of `once` 43 s.
CREATE TEMPORARY TABLE planned_occurrence (schedule text, second integer, until integer, at numeric, outcome text, reason text);
INSERT INTO planned_occurrence
SELECT 'all', n, n, CASE WHEN n <= 3 THEN n + 0.01 ELSE 10.4 END, 'fired', CASE WHEN n IN (4, 5) THEN 'catch_up' END FROM generate_series(1, 10) AS n
UNION ALL SELECT 'none', n, n, CASE WHEN n <= 3 THEN n + 0.01 ELSE 10.4 END, 'fired', NULL FROM generate_series(1, 10) AS n WHERE n NOT IN (4, 5)
UNION ALL VALUES ('none', 4, 5, 10.4, 'missed', 'late'), ('once', 12, 12, 12.01, 'fired', NULL), ('once', 24, 24, 43, 'missed', 'late'),
                 ('once', 36, 36, 43, 'fired', 'catch_up');
INSERT INTO orchestrix.occurrence (schedule, nominal, until, count, outcome, reason, job, at)
SELECT schedule, '2026-01-01Z'::timestamptz + make_interval(secs => second), '2026-01-01Z'::timestamptz + make_interval(secs => until),
       until - second + 1, outcome, reason, CASE WHEN outcome = 'fired' THEN md5(schedule || second)::uuid END,
       '2026-01-01Z'::timestamptz + make_interval(secs => at::float8)
FROM planned_occurrence;

INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, state, rank, max_attempts, queue, job_type, tenant, options)
SELECT job, at, at, at, 'pending', 0, 1, 'default', schedule, 'default',
       jsonb_build_object('correlationId', schedule || '@' || to_char(nominal AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
FROM orchestrix.occurrence WHERE outcome = 'fired';

-- One is completed, and one is dead.
CREATE FUNCTION audit.ended(id uuid, state orchestrix.job_state) RETURNS SETOF orchestrix.dead LANGUAGE sql AS $$
    SELECT (jsonb_populate_record(NULL::orchestrix.dead, to_jsonb(j) || jsonb_build_object('state', $2, 'finished_at', now()))).*
    FROM orchestrix.job j WHERE j.id = $1
$$;
INSERT INTO orchestrix.history SELECT * FROM audit.ended(md5('all1')::uuid, 'completed');
INSERT INTO orchestrix.dead SELECT * FROM audit.ended(md5('all2')::uuid, 'dead');
DELETE FROM orchestrix.job WHERE id IN (md5('all1')::uuid, md5('all2')::uuid);
