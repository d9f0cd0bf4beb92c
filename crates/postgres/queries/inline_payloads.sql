-- Moves the payloads of a day into the rows of jobs that outlive the day: unfinished jobs, dead jobs, and jobs in the
-- default partition of history. $1 day, $2 limit. Returns how many payloads were left to move; a job that changes
-- tables meanwhile is found by the next call. Relies on the primary keys.
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
SELECT count(*) AS remaining FROM staying
