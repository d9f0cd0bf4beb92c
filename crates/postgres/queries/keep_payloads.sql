-- Takes along the payloads of jobs that outlive their day: unfinished, dead, or finished without a day of their own.
-- Gives how many were still to be taken along; one that moved meanwhile is found where it is the next time. $1 day,
-- $2 how many. Relies on the primary keys.
WITH staying AS MATERIALIZED (
    SELECT p.id, p.body FROM orchestrix.payload p
    WHERE p.id >= orchestrix.id_floor($1::text::date::timestamp AT TIME ZONE 'UTC')
      AND p.id < orchestrix.id_floor(($1::text::date + 1)::timestamp AT TIME ZONE 'UTC')
      AND EXISTS (SELECT FROM orchestrix.jobs j WHERE j.id = p.id AND j.payload_apart)
    LIMIT $2
), live AS (
    UPDATE orchestrix.job j SET payload = s.body, payload_apart = false FROM staying s WHERE j.id = s.id AND j.payload_apart
), dead AS (
    UPDATE orchestrix.dead j SET payload = s.body, payload_apart = false FROM staying s WHERE j.id = s.id AND j.payload_apart
), kept AS (
    UPDATE orchestrix.history j SET payload = s.body, payload_apart = false FROM staying s WHERE j.id = s.id AND j.payload_apart
)
SELECT count(*) FROM staying
