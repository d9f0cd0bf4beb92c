-- Adds occurrences. One that exists fails the transaction, and with it the job that it would have enqueued.
-- $1 schedules, $2 nominal times, $3 last nominal times, $4 counts, $5 outcomes, $6 reasons, $7 jobs, $8 times.
INSERT INTO orchestrix.occurrence (schedule, nominal, until, count, outcome, reason, job, at)
SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::bigint[], $5::text[], $6::text[], $7::uuid[], $8::timestamptz[])
