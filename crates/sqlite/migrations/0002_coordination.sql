-- Who leads, and who is there. One row: with one writer nobody can hold on to it while another takes over.
CREATE TABLE leader (
    only_one INTEGER NOT NULL PRIMARY KEY CHECK (only_one = 1),
    epoch    INTEGER NOT NULL,
    node     TEXT,
    ends_at  INTEGER NOT NULL
) STRICT;
INSERT INTO leader (only_one, epoch, ends_at) VALUES (1, 0, 0);

CREATE TABLE node (
    name         TEXT NOT NULL PRIMARY KEY,
    address      TEXT,
    -- A JSON list.
    roles        TEXT NOT NULL,
    started_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX node_seen ON node (last_seen_at);
