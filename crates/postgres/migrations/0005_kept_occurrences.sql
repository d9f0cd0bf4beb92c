-- Lines of ledgers are kept by when they were written too: one that a backfill wrote for a time long past must not be gone the next day,
-- or that time would be filled twice.

CREATE INDEX occurrence_kept ON orchestrix.occurrence (greatest(until, at));
DROP INDEX orchestrix.occurrence_until;
