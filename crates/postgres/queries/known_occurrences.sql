-- Lines that ledgers hold already. $1 schedules, $2 nominal times. Relies on the primary key; why the items are wrapped as they are is said
-- in examine.sql.
WITH item AS MATERIALIZED (
    SELECT i.* FROM unnest((SELECT $1::text[]), (SELECT $2::timestamptz[])) AS i (schedule, nominal)
    WHERE i.schedule COLLATE "C" BETWEEN '' AND '~'
)
SELECT o.schedule, o.nominal, o.until, o.count, o.outcome, o.reason, o.job, o.at
FROM item i JOIN orchestrix.occurrence o ON o.schedule = i.schedule AND o.nominal = i.nominal
