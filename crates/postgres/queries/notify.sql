-- Tells other processes which queues have work. $1 queues, one per line.
SELECT pg_notify('orchestrix', $1)
