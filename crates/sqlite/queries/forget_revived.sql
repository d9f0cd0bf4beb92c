-- Forgets that jobs were given another chance, the oldest first. ?1 those of this time or earlier, ?2 how many.
DELETE FROM revived WHERE (at, id) IN (SELECT at, id FROM revived WHERE at <= ?1 ORDER BY at, id LIMIT ?2)
