-- Forgets log lines. ?1 up to which, ?2 recorded until. One that a wrong clock dated ahead keeps none of the others.
DELETE FROM log WHERE seq <= ?1 AND recorded_at <= ?2
