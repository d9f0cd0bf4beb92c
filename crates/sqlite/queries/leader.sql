-- Whose term it is, and until when.
SELECT epoch, node, ends_at FROM leader WHERE only_one = 1
