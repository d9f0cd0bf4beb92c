-- Deletes occurrences of one schedule, oldest first. ?1 schedule, ?2 limit.
-- Uses the primary key.
DELETE FROM occurrence WHERE schedule = ?1 AND nominal < coalesce(
    (SELECT o.nominal FROM occurrence o WHERE o.schedule = ?1 ORDER BY o.nominal LIMIT 1 OFFSET ?2),
    9223372036854775807)
