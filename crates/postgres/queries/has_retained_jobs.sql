-- Whether a day of history holds a job within its retention. $1 day, $2 retention of completed jobs in milliseconds,
-- $3 of cancelled jobs. Relies on history_finished, which serves the first condition on finished_at but not the
-- second.
SELECT EXISTS (
    SELECT FROM orchestrix.history
    WHERE id >= orchestrix.id_floor($1::text::date::timestamp AT TIME ZONE 'UTC')
      AND id < orchestrix.id_floor(($1::text::date + 1)::timestamp AT TIME ZONE 'UTC')
      AND finished_at > now() - greatest($2::bigint, $3::bigint) * interval '1 millisecond'
      AND finished_at > now() - CASE state WHEN 'completed' THEN $2::bigint ELSE $3::bigint END * interval '1 millisecond') AS retained
