-- The current or latest term.
-- Uses the primary key.
SELECT epoch, node, ends_at FROM leader WHERE only_one = 1
