-- Remembers that a job was given another chance; twice at one moment is once. ?1 now, ?2 id.
INSERT INTO revived (at, id) VALUES (?1, ?2) ON CONFLICT DO NOTHING
