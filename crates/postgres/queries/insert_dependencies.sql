-- Adds dependencies. $1 children, $2 parents, $3 whether the parent has finished.
INSERT INTO orchestrix.dependency (child, parent, met) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::boolean[])
