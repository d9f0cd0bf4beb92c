-- The time of this very statement: for whoever waited for a lock since the transaction began.
SELECT statement_timestamp()
