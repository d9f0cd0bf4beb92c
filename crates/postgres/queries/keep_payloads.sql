-- Takes along the payloads of jobs that outlive their day: unfinished, dead, or finished without a day of their own.
-- $1 day, $2 how many. Relies on the primary keys.
WITH staying AS (
    SELECT p.id, p.body FROM orchestrix.payload p
    WHERE p.id >= orchestrix.id_floor($1::text::date::timestamp AT TIME ZONE 'UTC')
      AND p.id < orchestrix.id_floor(($1::text::date + 1)::timestamp AT TIME ZONE 'UTC')
      AND EXISTS (SELECT FROM orchestrix.jobs j WHERE j.id = p.id AND j.payload_apart)
    LIMIT $2
), live AS (
    UPDATE orchestrix.job j SET payload = s.body, payload_apart = false FROM staying s WHERE j.id = s.id AND j.payload_apart RETURNING j.id
), dead AS (
    UPDATE orchestrix.dead j SET payload = s.body, payload_apart = false FROM staying s WHERE j.id = s.id AND j.payload_apart RETURNING j.id
), kept AS (
    UPDATE orchestrix.history j SET payload = s.body, payload_apart = false FROM staying s WHERE j.id = s.id AND j.payload_apart RETURNING j.id
)
SELECT id FROM live UNION ALL SELECT id FROM dead UNION ALL SELECT id FROM kept
