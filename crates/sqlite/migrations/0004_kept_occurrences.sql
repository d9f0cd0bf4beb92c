-- Lines of ledgers are kept by when they were written too: one that a backfill wrote for a time long past must not be gone the next day,
-- or that time would be filled twice.

CREATE INDEX occurrence_kept ON occurrence (max(until, at));
DROP INDEX occurrence_until;
