-- Payloads that are kept apart. $1 ids. Not part of the claim: naming the table there would take a lock on every day of it.
-- Relies on the primary key.
SELECT id, body FROM orchestrix.payload WHERE id = ANY ($1::uuid[])
