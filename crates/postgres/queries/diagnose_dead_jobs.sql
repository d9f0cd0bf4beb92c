-- Counts dead jobs, up to a limit. $1 limit.
SELECT count(*) AS dead FROM (SELECT FROM orchestrix.dead LIMIT $1) AS d
