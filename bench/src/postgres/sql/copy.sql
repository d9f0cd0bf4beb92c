-- Many jobs, one transaction.
COPY queue (queue, payload) FROM STDIN
