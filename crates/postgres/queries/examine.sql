-- What decides the end of an attempt, for tokens that are current. $1 ids, $2 counters, $3 secrets. Relies on the primary key.
SELECT j.id, j.lease_counter, j.lease_secret, j.state::text, j.attempts, j.max_attempts, j.losses, j.cancel_requested, (j.options -> 'retry')::text AS retry
FROM unnest((SELECT $1::uuid[]), (SELECT $2::integer[]), (SELECT $3::uuid[])) AS i (id, counter, secret)
JOIN orchestrix.job j ON j.id = i.id AND j.lease_counter = i.counter AND j.lease_secret = i.secret
WHERE j.state IN ('dispatched', 'running')
