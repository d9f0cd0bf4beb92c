select rank, eligible_at, id from jobs where state = 0 order by queue, rank, eligible_at, id limit 1
