-- How many unfinished jobs each queue holds, by state.
SELECT queue, state, n FROM depth WHERE n > 0 ORDER BY queue, state
