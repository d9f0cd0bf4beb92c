-- Every violation of the schedules, as a sentence. One statement, so that it reads one snapshot. It trusts the product
-- for two values, the creation time and the next nominal time of a schedule, and checks both. $1: the time past which
-- every schedule must have advanced.
WITH plan AS MATERIALIZED (
    SELECT p.*, s.created_at, s.next_nominal, make_interval(secs => p.period) AS step,
           -- The grace period.
           make_interval(secs => least(greatest(p.period / 2.0, 5), 60)::float8) AS grace,
           -- The first nominal time after the schedule was put.
           to_timestamp(((floor((extract(epoch FROM s.created_at) - p.phase) / p.period) + 1) * p.period + p.phase)::float8) AS begins
    FROM audit.plan p LEFT JOIN orchestrix.schedule s ON s.name = p.schedule
), nominal AS MATERIALIZED (
    SELECT p.schedule, t.nominal
    FROM plan p, generate_series(p.begins, p.next_nominal - interval '1 microsecond', p.step) AS t (nominal)
), line AS MATERIALIZED (
    -- An occurrence over several nominal times counts for each of them.
    SELECT o.schedule, t.nominal, o.outcome, o.reason, o.job, o.at, p.misfire, p.step, o.at - t.nominal > p.grace AS late
    FROM orchestrix.occurrence o JOIN plan p ON p.schedule = o.schedule, generate_series(o.nominal, o.until, p.step) AS t (nominal)
), job AS MATERIALIZED (
    SELECT j.*
    FROM (SELECT id, created_at, options, job_type COLLATE "C" AS schedule FROM orchestrix.job
          UNION ALL SELECT id, created_at, options, job_type COLLATE "C" FROM orchestrix.history
          UNION ALL SELECT id, created_at, options, job_type COLLATE "C" FROM orchestrix.dead) AS j
    JOIN plan p ON p.schedule = j.schedule
)
-- The state of schedules.
SELECT format('%s is missing, or never fires again', schedule) FROM plan WHERE next_nominal IS NULL
UNION ALL
SELECT format('%s was put between %s and %s, but its creation time is %s', schedule, asked_at, put_at, created_at)
FROM plan WHERE created_at NOT BETWEEN asked_at AND put_at
UNION ALL
SELECT format('%s is behind at %s', schedule, next_nominal) FROM plan WHERE next_nominal <= $1::timestamptz
UNION ALL
SELECT format('%s is next at %s, which is not a nominal time', schedule, next_nominal)
FROM plan WHERE extract(epoch FROM next_nominal - begins) % period <> 0
-- Every nominal time once, and no other time.
UNION ALL
SELECT format('%s has %s occurrences for %s', n.schedule, count(l.nominal), n.nominal)
FROM nominal n LEFT JOIN line l ON l.schedule = n.schedule AND l.nominal = n.nominal
GROUP BY n.schedule, n.nominal HAVING count(l.nominal) <> 1
UNION ALL
SELECT format('%s has an occurrence for %s, which is not a nominal time', l.schedule, l.nominal)
FROM line l LEFT JOIN nominal n ON n.schedule = l.schedule AND n.nominal = l.nominal WHERE n.nominal IS NULL
UNION ALL
SELECT format('there is an occurrence of %s, which is not planned', o.schedule)
FROM orchestrix.occurrence o LEFT JOIN plan p ON p.schedule = o.schedule WHERE p.schedule IS NULL
UNION ALL
SELECT format('the occurrence of %s from %s to %s counts %s times', o.schedule, o.nominal, o.until, o.count)
FROM orchestrix.occurrence o JOIN plan p ON p.schedule = o.schedule
WHERE o.count <> extract(epoch FROM o.until - o.nominal) / p.period + 1
-- Every fired occurrence has one job, and every job one occurrence.
UNION ALL
SELECT format('%s fired for %s, and its job %s exists %s times', l.schedule, l.nominal, l.job, count(j.id))
FROM line l LEFT JOIN job j ON j.id = l.job WHERE l.outcome = 'fired'
GROUP BY l.schedule, l.nominal, l.job HAVING count(j.id) <> 1
UNION ALL
SELECT format('job %s belongs to %s occurrences', job, count(*)) FROM line WHERE job IS NOT NULL GROUP BY job HAVING count(*) > 1
UNION ALL
SELECT format('job %s of %s has no occurrence', j.id, j.schedule) FROM job j LEFT JOIN line l ON l.job = j.id WHERE l.job IS NULL
UNION ALL
SELECT format('%s fired for %s, and its job is for %s of %s', l.schedule, l.nominal, j.options ->> 'correlationId', j.schedule)
FROM line l JOIN job j ON j.id = l.job
WHERE j.schedule <> l.schedule
   OR j.options ->> 'correlationId' IS DISTINCT FROM
      l.schedule || '@' || to_char(l.nominal AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
UNION ALL
-- One transaction has one timestamp.
SELECT format('the occurrence of %s for %s was written at %s, and its job at %s', l.schedule, l.nominal, l.at, j.created_at)
FROM line l JOIN job j ON j.id = l.job WHERE j.created_at <> l.at
-- The misfire rules.
UNION ALL
SELECT format('%s for %s: %s (%s), by the rule %s, %s after its time',
              schedule, nominal, outcome, coalesce(reason, 'no reason'), misfire, at - nominal)
FROM line
WHERE at < nominal
   OR CASE outcome WHEN 'fired' THEN reason IS DISTINCT FROM CASE WHEN late THEN 'catch_up' END OR late AND misfire = 'skip'
                   WHEN 'missed' THEN reason IS DISTINCT FROM 'late' OR NOT late OR misfire = 'catch_up'
                   -- No schedule is paused, and all may overlap.
                   ELSE true END
UNION ALL
SELECT format('%s fired late for %s at %s, although it was not the latest', schedule, nominal, at)
FROM line WHERE misfire = 'fire_once' AND outcome = 'fired' AND late AND nominal + step <= at
UNION ALL
SELECT format('%s missed %s at %s, and no later one fired instead', l.schedule, l.nominal, l.at)
FROM line l
WHERE l.misfire = 'fire_once' AND l.outcome = 'missed' AND NOT EXISTS (
    SELECT FROM line f WHERE f.schedule = l.schedule AND f.at = l.at AND f.outcome = 'fired' AND f.nominal > l.nominal)
UNION ALL
SELECT format('%s was processed at %s, but only times up to %s', schedule, at, max(nominal))
FROM line WHERE misfire <> 'catch_up' GROUP BY schedule, at, step HAVING max(nominal) + step <= at
-- Only the leader writes occurrences.
UNION ALL
SELECT format('the occurrence of %s for %s was written in epoch %s by %s, while %s led',
              f.schedule, f.nominal, f.epoch, f.node, coalesce(t.node, 'no node'))
FROM audit.firing f LEFT JOIN audit.takeover t ON t.epoch = f.epoch WHERE t.node IS DISTINCT FROM f.node
