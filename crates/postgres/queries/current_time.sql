-- The server's time at the start of this statement: after a lock wait it is later than the transaction's now().
SELECT statement_timestamp() AS now
