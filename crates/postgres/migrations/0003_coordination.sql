-- Who leads, and who is there. The epoch is in a row that only a takeover updates: whoever writes in the leader's name holds
-- it FOR SHARE until the commit, and neither renewals nor candidates wait for that. The term is in another.
CREATE TABLE orchestrix.leader (only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), epoch bigint NOT NULL);
CREATE TABLE orchestrix.leader_term (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    epoch    bigint NOT NULL,
    node     text,
    ends_at  timestamptz NOT NULL
) WITH (fillfactor = 50);
INSERT INTO orchestrix.leader (epoch) VALUES (0);
INSERT INTO orchestrix.leader_term (epoch, ends_at) VALUES (0, '-infinity');

CREATE TABLE orchestrix.node (
    name         text COLLATE "C" PRIMARY KEY,
    address      text,
    roles        text[] NOT NULL,
    started_at   timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL
);
CREATE INDEX node_seen ON orchestrix.node (last_seen_at);
