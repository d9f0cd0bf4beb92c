-- How many jobs failed for good, counted up to $1.
SELECT count(*) FROM (SELECT FROM orchestrix.dead LIMIT $1) AS d
