-- Notifies other processes which queues have claimable jobs. $1 queues, one per line.
SELECT pg_notify('orchestrix', $1)
