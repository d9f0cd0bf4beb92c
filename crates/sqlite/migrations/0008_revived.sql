-- Which jobs were given another chance lately. Nothing else tells of them to whoever follows many jobs: their ids are old, and nobody owns them yet.
-- Written by whoever gives the chance and by nobody else; read by time.

CREATE TABLE revived (
    at INTEGER NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (at, id)
) STRICT, WITHOUT ROWID;
