-- Reads the leader's epoch and keeps other nodes from taking over until this transaction ends.
-- A sub-select would not do: after a lock wait, PostgreSQL re-reads only the locked row itself.
SELECT epoch FROM orchestrix.leader FOR SHARE
