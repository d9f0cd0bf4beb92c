-- Forgets log lines. ?1 up to which.
DELETE FROM log WHERE seq <= ?1
