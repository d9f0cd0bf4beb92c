-- The plain table of a bare queue: the limit of `single`, `bulk` and `drain`. Ids ascend with time, so their order is
-- the claim order.
CREATE TABLE queue (
    id          BLOB NOT NULL PRIMARY KEY,
    queue       TEXT NOT NULL,
    payload     TEXT NOT NULL,
    state       INTEGER NOT NULL DEFAULT 0,
    token       BLOB,
    finished_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_claim ON queue (queue, id) WHERE state = 0;
