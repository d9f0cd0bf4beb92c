-- Which jobs were given another chance lately. Nothing else tells of them to whoever follows many jobs: their ids are old, and nobody owns them yet.
-- Written by whoever gives the chance and by nobody else; read by time.

CREATE TABLE orchestrix.revived (
    at timestamptz NOT NULL,
    id uuid NOT NULL,
    PRIMARY KEY (at, id)
);
