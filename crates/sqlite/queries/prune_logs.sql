-- Deletes log lines. ?1 up to this number, ?2 recorded up to this time. Because both are checked, a line that a wrong
-- clock dated in the future does not keep the others. Uses the primary key.
DELETE FROM log WHERE seq <= ?1 AND recorded_at <= ?2
