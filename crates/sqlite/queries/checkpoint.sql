-- What earlier attempts left for the next. ?1 id.
SELECT body FROM checkpoint WHERE id = ?1
