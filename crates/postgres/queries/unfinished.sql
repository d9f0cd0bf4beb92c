-- Which jobs are not finished. $1 ids. Relies on the primary key.
SELECT id FROM orchestrix.job WHERE id = ANY ($1::uuid[])
