-- Forgets lines of ledgers, the oldest first. ?1 whose last nominal time is this or earlier, ?2 how many. Relies on occurrence_until.
DELETE FROM occurrence WHERE (schedule, nominal) IN (
    SELECT schedule, nominal FROM occurrence WHERE until <= ?1 ORDER BY until, schedule, nominal LIMIT ?2)
