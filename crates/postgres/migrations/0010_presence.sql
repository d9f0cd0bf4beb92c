-- Which start of a worker a row is about, so that one who says the same again is told from one that began anew; and how long it may be silent,
-- by its own word and not by that of whoever looks.

ALTER TABLE orchestrix.worker ADD COLUMN instance text;
ALTER TABLE orchestrix.worker ADD COLUMN dead_after_ms bigint NOT NULL DEFAULT 30000;
