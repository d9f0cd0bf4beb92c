-- Notes that a job was redriven. Twice at the same time counts once. ?1 now, ?2 id.
-- Uses the primary key.
INSERT INTO revived (at, id) VALUES (?1, ?2) ON CONFLICT DO NOTHING
