-- Payloads stored outside the job's row. $1 ids. Relies on the primary key.
-- Not part of claim_jobs.sql: naming the partitioned table there would lock every partition in each claim.
SELECT id, body FROM orchestrix.payload WHERE id = ANY ($1::uuid[])
