select rank, eligible_at, id from live where state = 0 order by queue, rank, eligible_at, id limit 1
