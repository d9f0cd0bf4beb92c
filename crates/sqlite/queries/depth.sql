-- How many unfinished jobs one queue holds, by state. ?1 queue.
SELECT queue, state, n FROM depth WHERE queue = ?1
