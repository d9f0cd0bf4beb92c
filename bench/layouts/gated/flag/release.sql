update ready set gated = false where ctid = any(array(select ctid from ready where gated and ckey = 'k1' order by rank, eligible_at, id limit 1000 for update skip locked));
