-- Renews the leader's own term while it runs. $1 node, $2 epoch, $3 milliseconds.
UPDATE orchestrix.leader_term SET ends_at = now() + $3::bigint * interval '1 millisecond'
WHERE node = $1 AND epoch = $2 AND ends_at > now()
RETURNING epoch
