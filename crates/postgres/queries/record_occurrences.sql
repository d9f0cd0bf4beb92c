-- Writes lines into ledgers. A line that is there already undoes the transaction, and with it the job. $1 schedules, $2 nominal times,
-- $3 the last ones, $4 how many, $5 outcomes, $6 reasons, $7 jobs, $8 when.
INSERT INTO orchestrix.occurrence (schedule, nominal, until, count, outcome, reason, job, at)
SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::bigint[], $5::text[], $6::text[], $7::uuid[], $8::timestamptz[])
