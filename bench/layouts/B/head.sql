select rank, eligible_at, id from ready order by queue, rank, eligible_at, id limit 1
