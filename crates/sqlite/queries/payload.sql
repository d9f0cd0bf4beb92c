-- A payload that is kept apart. ?1 id.
SELECT body FROM payload WHERE id = ?1
