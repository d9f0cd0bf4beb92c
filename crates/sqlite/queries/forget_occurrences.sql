-- Forgets lines of ledgers, the oldest first: by their last nominal time or by when they were written, whichever is later, since a line that
-- goes lets its time be filled again. ?1 those of this time or earlier, ?2 how many. Relies on occurrence_kept.
DELETE FROM occurrence WHERE (schedule, nominal) IN (
    SELECT schedule, nominal FROM occurrence WHERE max(until, at) <= ?1 ORDER BY max(until, at), schedule, nominal LIMIT ?2)
