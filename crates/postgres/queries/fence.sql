-- Keeps everybody from taking over until the end of this transaction, and tells whose epoch it is. A sub-select would not do: a
-- statement that had to wait for a row looks again at that row alone.
SELECT epoch FROM orchestrix.leader FOR SHARE
