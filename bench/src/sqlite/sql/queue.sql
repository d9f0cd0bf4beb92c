-- The plain table that a bare queue would have: what `single`, `bulk` and `drain` are compared with. Ids rise with time,
-- so that their order is that of claims.
CREATE TABLE queue (
    id          BLOB NOT NULL PRIMARY KEY,
    queue       TEXT NOT NULL,
    payload     TEXT NOT NULL,
    state       INTEGER NOT NULL DEFAULT 0,
    token       BLOB,
    finished_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_claim ON queue (queue, id) WHERE state = 0;
