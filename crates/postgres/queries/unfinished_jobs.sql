-- Which jobs are unfinished. $1 ids. Relies on the primary key.
SELECT id FROM orchestrix.job WHERE id = ANY ($1::uuid[])
