-- The occurrences that exist at these nominal times. $1 schedules, $2 nominal times.
-- Relies on the primary key. read_attempts.sql explains the form of the `item` CTE.
WITH item AS MATERIALIZED (
    SELECT i.* FROM unnest((SELECT $1::text[]), (SELECT $2::timestamptz[])) AS i (schedule, nominal)
    WHERE i.schedule COLLATE "C" BETWEEN '' AND '~'
)
SELECT o.schedule, o.nominal, o.until, o.count, o.outcome, o.reason, o.job, o.at
FROM item i JOIN orchestrix.occurrence o ON o.schedule = i.schedule AND o.nominal = i.nominal
