-- How many unfinished jobs queues hold, by state; read row by row until there are enough. ?1 after which queue.
SELECT queue, state, n FROM depth WHERE queue > ?1 ORDER BY queue, state
