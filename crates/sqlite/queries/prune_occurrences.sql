-- Deletes occurrences, oldest first. Their age counts from the last nominal time or from when they were written,
-- whichever is later: once an occurrence is gone, a backfill may fill its time again.
-- ?1 up to this time, ?2 limit. Relies on occurrence_kept.
DELETE FROM occurrence WHERE (schedule, nominal) IN (
    SELECT schedule, nominal FROM occurrence WHERE max(until, at) <= ?1
    ORDER BY max(until, at), schedule, nominal LIMIT ?2)
