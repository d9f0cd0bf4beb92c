-- Deletes the occurrences of a schedule that a backfill replaces. $1 schedule, $2 nominal times. Relies on the
-- primary key.
DELETE FROM orchestrix.occurrence WHERE schedule = $1 AND nominal = ANY ($2::timestamptz[])
